"""Anthropic's memory stores over the hub's own memories: `client.beta.memory_stores` with another `base_url`.

A store is a named row; its memories are ordinary memories with a path in the scope `project: <name>`. People see and
edit the same rows on the hub's pages.
"""

import re
from typing import Any

from memoryhub.anthropic_api.errors import BadRequest
from memoryhub.anthropic_api.shapes import (
    memory_as_dict,
    page_as_dict,
    prefix_as_dict,
    store_as_dict,
    version_as_dict,
)
from memoryhub.anthropic_api.wire import (
    WireRequest,
    endpoint,
    read_body,
    read_flag,
    read_limit,
    read_moment,
    read_number,
    read_text,
    read_view,
)
from memoryhub.common.keyset import Order, cut
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryStore, MemoryVersion, Scope
from memoryhub.long_term_memory.queries import stores as queries
from memoryhub.long_term_memory.queries.files import Directory, files_of, find_scope_row, list_files
from memoryhub.long_term_memory.services import stores as services
from memoryhub.long_term_memory.services.drafting import bind
from memoryhub.long_term_memory.services.editing import edit_memory, redact_version
from memoryhub.long_term_memory.services.files import create_file
from memoryhub.long_term_memory.services.forgetting import forget_memory
from memoryhub.long_term_memory.services.writer import UNSET, MemoryChanges, Writer

NEWEST_FIRST: Order = [("id", "desc")]
_SHA256 = re.compile(r"[0-9a-f]{64}")
OPERATIONS = ("created", "modified", "deleted")


def _writer(request: WireRequest) -> Writer:
    return Writer.of(request.principal, door="stores")


def _store(request: WireRequest, store_id: str) -> MemoryStore:
    return queries.get_store(request.principal.workspace, store_id, binding=request.principal.binding)


def _scope_names(request: WireRequest, store: MemoryStore) -> ScopeNames:
    """A store's scope, inside the key's binding."""
    return bind(queries.scope_of_store(store), _writer(request).binding)


def _scope(request: WireRequest, store: MemoryStore) -> Scope | None:
    return find_scope_row(request.principal.workspace, _scope_names(request, store))


# --- stores ----------------------------------------------------------------------------------------------------------
def _list_stores(request: WireRequest) -> Any:
    rows = queries.list_stores(
        request.principal.workspace,
        binding=request.principal.binding,
        include_archived=read_flag(request, "include_archived"),
        created_since=read_moment(request, "created_at[gte]"),
        created_until=read_moment(request, "created_at[lte]"),
    )
    found, next_page = cut(rows, order=NEWEST_FIRST, cursor=request.GET.get("page"), limit=read_limit(request))
    return page_as_dict([store_as_dict(store) for store in found], next_page)


def _create_store(request: WireRequest) -> Any:
    body = read_body(request, "name", "description", "metadata")
    store = services.create_store(
        writer=_writer(request),
        name=read_text(body, "name", required=True) or "",
        description=read_text(body, "description") or "",
        metadata={key: value for key, value in _metadata(body).items() if value is not None},
    )
    return store_as_dict(store)


def _retrieve_store(request: WireRequest, store_id: str) -> Any:
    return store_as_dict(_store(request, store_id))


def _update_store(request: WireRequest, store_id: str) -> Any:
    body = read_body(request, "name", "description", "metadata")
    store = services.update_store(
        writer=_writer(request),
        store=_store(request, store_id),
        name=read_text(body, "name"),
        description=read_text(body, "description"),
        metadata=_metadata(body) if body.get("metadata") is not None else None,
    )
    return store_as_dict(store)


def _metadata(body: dict[str, Any]) -> dict[str, str | None]:
    value = body.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest("metadata: input should be an object.")
    return {read_text({"key": key}, "key") or "": read_text(value, key) for key in value}


def _archive_store(request: WireRequest, store_id: str) -> Any:
    return store_as_dict(services.archive_store(writer=_writer(request), store=_store(request, store_id)))


def _delete_store(request: WireRequest, store_id: str) -> Any:
    store = _store(request, store_id)
    services.delete_store(writer=_writer(request), store=store, scope=_scope(request, store))
    return {"id": store_id, "type": "memory_store_deleted"}


# --- memories --------------------------------------------------------------------------------------------------------
def _list_memories(request: WireRequest, store_id: str) -> Any:
    store = _store(request, store_id)
    view = read_view(request, "basic")
    prefix = request.GET.get("path_prefix", "/")
    if not (prefix.startswith("/") and prefix.endswith("/")):
        raise BadRequest("path_prefix starts and ends with a slash.")
    files = files_of(_scope(request, store))
    found, next_page = list_files(
        files if view == "full" else files.defer("content"),
        prefix=prefix,
        limit=read_limit(request, view),
        cursor=request.GET.get("page"),
        direct_only=read_number(request, "depth", 0, 0, 1) == 1,
    )
    versions = queries.current_version_ids([item for item in found if isinstance(item, Memory)])
    items = [
        prefix_as_dict(item) if isinstance(item, Directory) else memory_as_dict(item, store, versions[item.pk], view)
        for item in found
    ]
    return page_as_dict(items, next_page)


def _create_memory(request: WireRequest, store_id: str) -> Any:
    store = _store(request, store_id)
    services.refuse_archived(store)
    view = read_view(request, "basic")
    body = read_body(request, "path", "content")
    memory = create_file(
        writer=_writer(request),
        scope=_scope_names(request, store),
        path=read_text(body, "path", required=True) or "",
        content=read_text(body, "content", required="content" not in body) or "",
        store=store,
    )
    return _memory(request, store, memory.public_id, view)


def _retrieve_memory(request: WireRequest, store_id: str, memory_id: str) -> Any:
    return _memory(request, _store(request, store_id), memory_id, read_view(request, "full"))


def _update_memory(request: WireRequest, store_id: str, memory_id: str) -> Any:
    store = _store(request, store_id)
    services.refuse_archived(store)
    view = read_view(request, "basic")
    body = read_body(request, "path", "content", "precondition")
    content, path = read_text(body, "content"), read_text(body, "path")
    queries.get_stored_memory(_scope(request, store), memory_id)
    edit_memory(
        writer=_writer(request),
        memory_id=memory_id,
        changes=MemoryChanges(content=UNSET if content is None else content, path=UNSET if path is None else path),
        expected_sha256=_precondition(body),
        file_door=True,
    )
    return _memory(request, store, memory_id, view)


def _precondition(body: dict[str, Any]) -> str | None:
    given = body.get("precondition")
    if given is None:
        return None
    if not isinstance(given, dict) or given.get("type") != "content_sha256":
        raise BadRequest("precondition: the one type is content_sha256.")
    return _sha256(given.get("content_sha256"), "precondition.content_sha256")


def _sha256(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise BadRequest(f"{name}: 64 lower-case hexadecimal characters.")
    return value


def _delete_memory(request: WireRequest, store_id: str, memory_id: str) -> Any:
    given = request.GET.get("expected_content_sha256")
    expected = None if given is None else _sha256(given, "expected_content_sha256")
    queries.get_stored_memory(_scope(request, _store(request, store_id)), memory_id)
    forget_memory(writer=_writer(request), memory_id=memory_id, expected_sha256=expected)
    return {"id": memory_id, "type": "memory_deleted"}


def _memory(request: WireRequest, store: MemoryStore, memory_id: str, view: str) -> Any:
    memory = queries.get_stored_memory(_scope(request, store), memory_id)
    return memory_as_dict(memory, store, queries.current_version_ids([memory])[memory.pk], view)


# --- versions --------------------------------------------------------------------------------------------------------
def _list_versions(request: WireRequest, store_id: str) -> Any:
    store = _store(request, store_id)
    view = read_view(request, "basic")
    operation = request.GET.get("operation")
    if operation is not None and operation not in OPERATIONS:
        raise BadRequest(f"operation is one of {', '.join(OPERATIONS)}.")
    rows = queries.list_store_versions(
        _scope(request, store),
        memory_id=request.GET.get("memory_id"),
        operation=operation,
        actor=_actor(request),
        session=request.GET.get("session_id"),
        created_since=read_moment(request, "created_at[gte]"),
        created_until=read_moment(request, "created_at[lte]"),
    )
    limit = read_limit(request, view)
    found, next_page = cut(rows, order=NEWEST_FIRST, cursor=request.GET.get("page"), limit=limit)
    return page_as_dict([version_as_dict(row, store, view) for row in found], next_page)


def _actor(request: WireRequest) -> tuple[str, str] | None:
    for name, kind in (("api_key_id", "key"), ("service_account_id", "job")):
        if value := request.GET.get(name):
            return kind, value
    return None


def _retrieve_version(request: WireRequest, store_id: str, version_id: str) -> Any:
    store = _store(request, store_id)
    return version_as_dict(_version(request, store, version_id), store, read_view(request, "full"))


def _redact_version(request: WireRequest, store_id: str, version_id: str) -> Any:
    store = _store(request, store_id)
    _version(request, store, version_id)
    read_body(request)
    redact_version(writer=_writer(request), version_id=version_id)
    return version_as_dict(_version(request, store, version_id), store, "full")


def _version(request: WireRequest, store: MemoryStore, version_id: str) -> MemoryVersion:
    return queries.get_store_version(_scope(request, store), version_id)


stores = endpoint(GET=("memories:read", _list_stores), POST=("memories:write", _create_store))
store = endpoint(
    GET=("memories:read", _retrieve_store),
    POST=("memories:write", _update_store),
    DELETE=("memories:write", _delete_store),
)
archive = endpoint(POST=("memories:write", _archive_store))
memories = endpoint(GET=("memories:read", _list_memories), POST=("memories:write", _create_memory))
memory = endpoint(
    GET=("memories:read", _retrieve_memory),
    POST=("memories:write", _update_memory),
    DELETE=("memories:write", _delete_memory),
)
versions = endpoint(GET=("memories:read", _list_versions))
version = endpoint(GET=("memories:read", _retrieve_version))
redact = endpoint(POST=("memories:write", _redact_version))
