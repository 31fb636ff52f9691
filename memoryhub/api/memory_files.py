"""Memories as files: import and export in any format, and reading and writing by path.

These paths stand before `/memories/{id}` in the table of routers.
"""

import re
from contextlib import closing
from io import BytesIO
from itertools import chain, islice
from typing import Annotated, Any, BinaryIO, Literal

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Status

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit
from memoryhub.api.schemas.jobs import JobAccepted, accepted
from memoryhub.api.schemas.memory_files import (
    FileIn,
    FileOut,
    FilePage,
    ForgottenOut,
    ImportOut,
    RenamedOut,
    RenameIn,
)
from memoryhub.common import clock, errors
from memoryhub.flows.export_memories import export_memories, find_format
from memoryhub.flows.import_memories import import_stream
from memoryhub.flows.memory_uploads import DIRECT_BYTES, leave_import_job
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries.files import files_of, find_scope_row, get_file, list_files
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services.files import (
    create_file,
    forget_files,
    rename_files,
    scope_of_files,
    write_file,
)
from memoryhub.long_term_memory.services.writer import Writer

router = Router(tags=["Memories"])
MEBIBYTE = 1024 * 1024
_ETAG = re.compile(r'(?:W/)?"v(\d{1,9})"')
Path = Annotated[str, Query(..., max_length=4096, description="A path such as /memories/notes.md.")]
Name = Annotated[str | None, Query(None, max_length=500)]


class MissingIfMatch(errors.PreconditionRequired):
    slug = "if-match-required"
    title = "Say which version you saw"


class EmptyUpload(errors.Malformed):
    slug = "empty-upload"
    title = "There is no file in this request"


@router.post(
    "/memories/import",
    auth=requires("memories:write"),
    response={200: ImportOut, 202: JobAccepted},
    operation_id="importMemories",
    summary="Import memories from a file",
)
def import_memories(
    request: ApiRequest,
    format: Annotated[str, Query("auto", max_length=40)] = "auto",
    dry_run: bool = False,
    file_name: Annotated[str, Query("", max_length=200)] = "",
) -> Any:
    """The file is the body, or a part of a multipart form. Its format is found out unless it is named.

    What can't be read is skipped and named with its line. Everything imported is one change set; importing the same
    file again stores nothing twice. Large files answer 202 with a job whose result is the same body.
    """
    stream, size, name = _upload(request, file_name)
    principal = request.principal
    reason = f"import of {name}"[:500] if name else "import"
    with closing(stream):
        if size > DIRECT_BYTES and not dry_run:
            job = leave_import_job(principal=principal, stream=stream, format=format, file_name=name, reason=reason)
            return Status(202, accepted(job))
        writer = Writer.of(principal, door="api", reason=reason)
        result = import_stream(writer=writer, stream=stream, format=format, file_name=name, dry_run=dry_run)
    return Status(200, result.as_dict())


def _upload(request: HttpRequest, file_name: str) -> tuple[BinaryIO, int, str]:
    """The uploaded stream, its size, and its name where it has one."""
    if request.content_type == "multipart/form-data":
        files = [file for name in request.FILES for file in request.FILES.getlist(name)]
        if len(files) != 1:
            raise EmptyUpload("Send exactly one file.")
        uploaded: Any = files[0]
        return uploaded.file, uploaded.size or 0, file_name or uploaded.name or ""
    try:
        size = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        size = 0
    if not size:
        raise EmptyUpload("The body is the file.")
    return _Body(request), size, file_name  # type: ignore[return-value]


class _Body:
    """The request's body as a stream; it is never held whole."""

    def __init__(self, request: HttpRequest) -> None:
        # Whoever looked at the form fields (the CSRF check does) has read the body already.
        self._source: Any = BytesIO(request.body) if hasattr(request, "_body") else request

    def read(self, size: int) -> bytes:
        return bytes(self._source.read(size))

    def close(self) -> None:
        """The server closes it."""


@router.get(
    "/memories/export",
    auth=requires("memories:read"),
    response={200: None},
    operation_id="exportMemories",
    summary="Export memories to a file",
)
def export(
    request: ApiRequest,
    format: Annotated[str, Query("memoryhub", max_length=40)] = "memoryhub",
    agent: Name = None,
    user: Name = None,
    project: Name = None,
    tag: Annotated[list[str], Query([])] = [],  # noqa: B006
    kind: Literal["episodic", "semantic", "procedural"] | None = None,
    session: Name = None,
    versions: bool = False,
) -> StreamingHttpResponse:
    """Streams every memory that passes the filters, archived ones too; the trash stays here."""
    chosen = find_format(format)
    wanted = MemoryFilter(
        scope=ScopeNames(agent or None, user or None, project or None),
        tags=tag,
        kinds=[kind] if kind else [],
        session=session,
    )
    pieces = export_memories(
        workspace=request.principal.workspace,
        format=chosen,
        wanted=wanted.inside(request.principal.binding),
        with_versions=versions,
    )
    # The first pieces are made before the answer begins: what goes wrong then still becomes a problem body. The second
    # one comes from the database where the first is only a format's opening.
    begun = list(islice(pieces, 2))
    response = StreamingHttpResponse(
        (piece.encode() for piece in chain(begun, pieces)), content_type=f"{chosen.media_type}; charset=utf-8"
    )
    name = f"memories-{chosen.name}-{clock.now():%Y%m%d}{chosen.suffix}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@router.get(
    "/memories/files",
    auth=requires("memories:read"),
    response=FilePage,
    operation_id="listMemoryFiles",
    summary="List the files below a directory, by path",
)
def list_memory_files(
    request: ApiRequest,
    limit: Limit,
    cursor: Cursor = None,
    prefix: Annotated[str, Query("/", max_length=4096, description="A directory with its closing slash.")] = "/",
    agent: Name = None,
    user: Name = None,
    project: Name = None,
) -> Any:
    """Every file whose path starts with the prefix, without contents. The scope is the key's, or the default agent's."""
    if not (prefix.startswith("/") and prefix.endswith("/")):
        raise errors.Invalid("prefix starts and ends with a slash.")
    principal = request.principal
    scope = scope_of_files(principal.binding, ScopeNames(agent or None, user or None, project or None))
    files = files_of(find_scope_row(principal.workspace, scope)).defer("content")
    found, next_cursor = list_files(files, prefix=prefix, limit=limit, cursor=cursor)
    items = [FileOut.of(memory, with_content=False) for memory in found if isinstance(memory, Memory)]
    return FilePage(items=items, next_cursor=next_cursor)


@router.post(
    "/memories/files",
    auth=requires("memories:write"),
    response={201: FileOut},
    operation_id="createMemoryFile",
    summary="Create a file",
)
def create_memory_file(request: ApiRequest, response: HttpResponse, body: FileIn) -> Any:
    """409 `path-taken` where a file or directory stands, `path-blocked` below a file. A text with a secret is refused."""
    writer = Writer.of(request.principal, door="file")
    memory = create_file(
        writer=writer, scope=scope_of_files(writer.binding, body.scope.names()), path=body.path, content=body.content
    )
    response["ETag"] = f'"v{memory.version}"'
    return Status(201, FileOut.of(memory))


@router.get(
    "/memories/files/content",
    auth=requires("memories:read"),
    response=FileOut,
    operation_id="readMemoryFile",
    summary="Read a file",
)
def read_memory_file(
    request: ApiRequest, response: HttpResponse, path: Path, agent: Name = None, user: Name = None, project: Name = None
) -> Any:
    """The file at exactly this path; 404 `unknown-file` where there is none."""
    principal = request.principal
    scope = scope_of_files(principal.binding, ScopeNames(agent or None, user or None, project or None))
    memory = get_file(principal.workspace, scope, path)
    response["ETag"] = f'"v{memory.version}"'
    return FileOut.of(memory)


@router.put(
    "/memories/files/content",
    auth=requires("memories:write"),
    response=FileOut,
    operation_id="writeMemoryFile",
    summary="Write a file",
)
def write_memory_file(request: ApiRequest, response: HttpResponse, body: FileIn) -> Any:
    """New content for a file that exists. `If-Match` names the version it is based on: 412 when it is not the current."""
    writer = Writer.of(request.principal, door="file")
    memory = write_file(
        writer=writer,
        scope=scope_of_files(writer.binding, body.scope.names()),
        path=body.path,
        content=body.content,
        expected_version=_expected_version(request),
    )
    response["ETag"] = f'"v{memory.version}"'
    return FileOut.of(memory)


@router.delete(
    "/memories/files/content",
    auth=requires("memories:write"),
    response=ForgottenOut,
    operation_id="forgetMemoryFiles",
    summary="Forget a file, or a directory with all below it",
)
def forget_memory_files(
    request: ApiRequest, path: Path, agent: Name = None, user: Name = None, project: Name = None
) -> Any:
    """One change set, which can be reverted."""
    writer = Writer.of(request.principal, door="file")
    scope = scope_of_files(writer.binding, ScopeNames(agent or None, user or None, project or None))
    return ForgottenOut(forgotten=forget_files(writer=writer, scope=scope, path=path))


@router.post(
    "/memories/files/rename",
    auth=requires("memories:write"),
    response=RenamedOut,
    operation_id="renameMemoryFiles",
    summary="Move a file, or a directory with all below it",
)
def rename_memory_files(request: ApiRequest, body: RenameIn) -> Any:
    """One change set. Refused where something stands at the target, below a file, and into itself."""
    writer = Writer.of(request.principal, door="file")
    scope = scope_of_files(writer.binding, body.scope.names())
    return RenamedOut(renamed=rename_files(writer=writer, scope=scope, old=body.source, new=body.target))


def _expected_version(request: HttpRequest) -> int | None:
    given = request.headers.get("If-Match")
    if given is None:
        raise MissingIfMatch('Send If-Match: "v<version>" of the file as you read it.')
    if given.strip() == "*":
        return None
    match = _ETAG.fullmatch(given.strip())
    if match is None:
        raise errors.Malformed('If-Match is "v<version>" or *.')
    return int(match[1])
