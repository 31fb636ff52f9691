"""Where a file may stand: not where something stands already, not below a file, and no file where a directory is."""

from collections.abc import Collection, Sequence

from memoryhub.common import errors
from memoryhub.long_term_memory.models import Memory, Scope
from memoryhub.long_term_memory.queries.files import below, files_of
from memoryhub.long_term_memory.rows import PATHS_IN_USE, find_in_scopes
from memoryhub.long_term_memory.services.writer import PathTaken

CHUNK = 100  # a path has up to twenty parents


class PathBlocked(errors.Conflict):
    """Carries the id and path of the file that is in the way."""

    slug = "path-blocked"
    title = "There is a file above this path"


def parents_of(path: str) -> list[str]:
    """`/a/b/c` -> `/a`, `/a/b`."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def check_place(scope: Scope, path: str, *, moving: Collection[int] = ()) -> None:
    """Raise PathTaken or PathBlocked unless a file may stand there; files that are being moved don't count."""
    files = files_of(scope).exclude(pk__in=moving)
    above = files.filter(path__in=parents_of(path)).first()
    if above is not None:
        raise PathBlocked(
            f"{above.path} is a file, so nothing can lie below it.",
            conflicting_id=above.public_id,
            conflicting_path=above.path,
        )
    inside = files.filter(path=path).first() or below(files, f"{path}/").first()
    if inside is not None:
        raise PathTaken(
            f"There is {'a memory' if inside.path == path else 'a directory'} at {path} already.",
            conflicting_id=inside.public_id,
            conflicting_path=inside.path,
        )


def check_places(memories: Sequence[Memory]) -> None:
    """The same for files that move together; a few queries, however many there are."""
    moving = {memory.pk for memory in memories}
    if len(memories) == 1:
        check_place(memories[0].scope, memories[0].path or "", moving=moving)
    for start in range(0, len(memories), CHUNK) if len(memories) > 1 else ():
        chunk = memories[start : start + CHUNK]
        wanted = {(memory.scope_id, at): memory.path for memory in chunk for at in _path_and_parents(memory)}
        standing = Memory.objects.filter(pk__in=find_in_scopes(wanted, "path", PATHS_IN_USE))
        for memory in standing:
            path = wanted.get((memory.scope_id, memory.path or ""))
            if path is not None and memory.pk not in moving:
                refuse = PathTaken if memory.path == path else PathBlocked
                raise refuse(
                    f"There is a memory at {memory.path} already.",
                    conflicting_id=memory.public_id,
                    conflicting_path=memory.path,
                )


def _path_and_parents(memory: Memory) -> list[str]:
    return [*parents_of(memory.path or ""), memory.path or ""]
