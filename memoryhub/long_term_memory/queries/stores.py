"""Reading memory stores and what lies in them."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import F, QuerySet

from memoryhub.common import errors
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryStore, MemoryVersion, Scope
from memoryhub.long_term_memory.queries.files import files_of
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Binding


class UnknownStore(errors.NotFound):
    slug = "unknown-store"
    title = "Unknown memory store"


class UnknownStoredMemory(errors.NotFound):
    slug = "unknown-memory"
    title = "Unknown memory"


def get_store(workspace: Workspace, store_id: str, *, binding: Binding | None = None) -> MemoryStore:
    """One store of the workspace, archived or not, that the key may reach."""
    store = _reachable(MemoryStore.objects.filter(workspace=workspace), binding).filter(public_id=store_id).first()
    if store is None:
        raise UnknownStore(f"There is no memory store {store_id[:80]}.")
    return store


def _reachable(rows: QuerySet[MemoryStore], binding: Binding | None) -> QuerySet[MemoryStore]:
    return rows.filter(project=binding.project) if binding and binding.project else rows


def list_stores(
    workspace: Workspace,
    *,
    binding: Binding | None = None,
    include_archived: bool = False,
    created_since: datetime | None = None,
    created_until: datetime | None = None,
) -> QuerySet[MemoryStore]:
    """The workspace's stores that the key may reach."""
    rows = _reachable(MemoryStore.objects.filter(workspace=workspace), binding)
    if not include_archived:
        rows = rows.filter(archived_at=None)
    if created_since is not None:
        rows = rows.filter(created_at__gte=created_since)
    if created_until is not None:
        rows = rows.filter(created_at__lte=created_until)
    return rows


def scope_of_store(store: MemoryStore) -> ScopeNames:
    """The scope whose files a store's memories are."""
    return ScopeNames(project=store.project)


def get_stored_memory(scope: Scope | None, memory_id: str) -> Memory:
    """One memory of a store."""
    memory = files_of(scope).filter(public_id=memory_id).first()
    if memory is None:
        raise UnknownStoredMemory(f"There is no memory {memory_id[:80]} in this store.")
    return memory


def current_version_ids(memories: Sequence[Memory]) -> dict[int, str]:
    """The public id of each memory's current version, by row id; one query."""
    rows = MemoryVersion.objects.filter(memory_id__in=[memory.pk for memory in memories], number=F("memory__version"))
    return dict(rows.values_list("memory_id", "public_id"))


def list_store_versions(
    scope: Scope | None,
    *,
    memory_id: str | None = None,
    operation: str | None = None,
    actor: tuple[str, str] | None = None,
    session: str | None = None,
    created_since: datetime | None = None,
    created_until: datetime | None = None,
) -> QuerySet[MemoryVersion]:
    """The versions of a store's memories, also of those that are forgotten."""
    rows = MemoryVersion.objects.filter(memory__scope=scope) if scope else MemoryVersion.objects.none()
    if memory_id is not None:
        rows = rows.filter(memory__public_id=memory_id)
    if operation is not None:
        rows = rows.filter(operation=operation)
    if actor is not None:
        rows = rows.filter(actor_kind=actor[0], actor_id=actor[1])
    if session is not None:
        rows = rows.filter(session__sid=session)
    if created_since is not None:
        rows = rows.filter(created_at__gte=created_since)
    if created_until is not None:
        rows = rows.filter(created_at__lte=created_until)
    return rows.select_related("memory", "session")


def get_store_version(scope: Scope | None, version_id: str) -> MemoryVersion:
    """One version of a store's memories."""
    row = list_store_versions(scope).filter(public_id=version_id).first()
    if row is None:
        raise UnknownStoredMemory(f"There is no memory version {version_id[:80]} in this store.")
    return row
