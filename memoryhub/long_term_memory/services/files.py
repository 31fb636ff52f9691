"""Writing memories that are addressed like files: create, write, move and forget by path, each one change set."""

from dataclasses import replace

from django.db import IntegrityError, transaction

from memoryhub.common import clock, errors
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryState, MemoryStore
from memoryhub.long_term_memory.queries.files import UnknownFile, below, files_of, find_scope_row, get_file
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.drafting import bind, check_memory_path
from memoryhub.long_term_memory.services.editing import edit_memory
from memoryhub.long_term_memory.services.forgetting import close_reviews
from memoryhub.long_term_memory.services.places import check_place
from memoryhub.long_term_memory.services.remembering import remember
from memoryhub.long_term_memory.services.writer import MemoryChanges, MemoryDraft, PathTaken, Writer
from memoryhub.workspaces.principals import Binding

DEFAULT_AGENT = "default"


class MovedIntoItself(errors.Conflict):
    slug = "moved-into-itself"
    title = "A directory can't be moved into itself"


def scope_of_files(binding: Binding, names: ScopeNames) -> ScopeNames:
    """The scope that a file door works in: the key's binding, what the caller names, else the default agent."""
    if not names and not (binding.agent or binding.user or binding.project):
        names = ScopeNames(agent=DEFAULT_AGENT)
    return bind(names, binding)


def create_file(
    *, writer: Writer, scope: ScopeNames, path: str, content: str, store: MemoryStore | None = None
) -> Memory:
    """A new file; raises PathTaken where something stands there, PathBlocked below a file."""
    draft = MemoryDraft(content=content, scope=scope, path=path, store=store)
    try:
        result = remember(writer=writer, drafts=[draft], file_door=True)[0]
    except IntegrityError:
        # Somebody created the same path at the same moment: now their file stands there, and is named.
        row = find_scope_row(writer.workspace, scope)
        if row is not None:
            check_place(row, path)
        raise
    return Memory.objects.select_related("scope").get(workspace=writer.workspace, public_id=result.id)


def write_file(
    *, writer: Writer, scope: ScopeNames, path: str, content: str, expected_version: int | None = None
) -> Memory:
    """New content for a file; raises ChangedMeanwhile where it is not the version that the caller saw."""
    memory = get_file(writer.workspace, scope, check_memory_path(path))
    return edit_memory(
        writer=writer,
        memory_id=memory.public_id,
        changes=MemoryChanges(content=content),
        expected_version=expected_version,
        file_door=True,
    )


def rename_files(*, writer: Writer, scope: ScopeNames, old: str, new: str) -> int:
    """Move a file, or a directory with everything below it; returns how many files moved."""
    check_memory_path(old)
    check_memory_path(new)
    if new == old:
        get_file_or_directory(writer, scope, old)
        raise PathTaken(f"There is a memory at {new} already.")
    if new.startswith(f"{old}/"):
        raise MovedIntoItself(f"{old} can't be moved into itself.")
    with transaction.atomic():
        memories = get_file_or_directory(writer, scope, old)
        check_place(memories[0].scope, new, moving=[memory.pk for memory in memories])
        moved = revising.begin(memories)
        for revision in moved:
            revision.memory.path = check_memory_path(new + (revision.memory.path or "")[len(old) :])
        named = writer if writer.reason else replace(writer, reason=f"{old} -> {new}")
        revising.commit(writer=named, action="rename", revisions=moved, now=clock.now())
    return len(moved)


def forget_files(*, writer: Writer, scope: ScopeNames, path: str) -> int:
    """Forget a file, or everything below a directory; returns how many."""
    with transaction.atomic():
        now = clock.now()
        memories = get_file_or_directory(writer, scope, check_memory_path(path))
        forgotten = revising.begin(memories)
        for revision in forgotten:
            revising.set_state(revision, MemoryState.FORGOTTEN, now)
        revising.commit(writer=writer, action="forget", revisions=forgotten, now=now)
        close_reviews([memory.pk for memory in memories], now)
    return len(forgotten)


def get_file_or_directory(writer: Writer, scope: ScopeNames, path: str) -> list[Memory]:
    """The file at a path, or all files below it; raises UnknownFile where there is neither."""
    files = files_of(find_scope_row(writer.workspace, scope))
    found = list(files.filter(path=path)) or list(below(files, f"{path}/"))
    if not found:
        raise UnknownFile(f"There is nothing at {path[:200]}.")
    return found
