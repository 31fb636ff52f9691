"""Memory stores: named shelves of the memory-stores wire. A store's memories have the scope `project: <name>`."""

from typing import Any

from django.db import IntegrityError, transaction

from memoryhub.audit.services import record_event
from memoryhub.common import clock, errors, ids
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryState, MemoryStore
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.drafting import bind
from memoryhub.long_term_memory.services.writer import InvalidMemory, Writer


class UnknownStore(errors.NotFound):
    slug = "unknown-store"
    title = "Unknown memory store"


class StoreNameTaken(errors.Conflict):
    slug = "store-name-taken"
    title = "There is a memory store of this name already"


def create_store(
    *, writer: Writer, name: str, description: str = "", metadata: dict[str, Any] | None = None
) -> MemoryStore:
    """Make a store; its name is unique in the workspace, since it is its memories' project."""
    if not name.strip() or len(name) > 500:
        raise InvalidMemory("A store's name takes 1 to 500 characters.")
    bind(ScopeNames(project=name), writer)
    now = clock.now()
    try:
        with transaction.atomic():
            store = MemoryStore.objects.create(
                workspace=writer.workspace,
                public_id=ids.new_id("memstore"),
                name=name,
                description=description,
                metadata=metadata or {},
                created_at=now,
                updated_at=now,
            )
            _log(writer, "create store", store)
    except IntegrityError as error:
        raise StoreNameTaken(f"There is a memory store named {name} already.") from error
    return store


def get_store(*, writer: Writer, store_id: str) -> MemoryStore:
    """One store of the workspace, inside the key's binding."""
    store = MemoryStore.objects.filter(workspace=writer.workspace, public_id=store_id).first()
    if store is None or (writer.binding.project and writer.binding.project != store.name):
        raise UnknownStore(f"There is no memory store {store_id[:80]} here.")
    return store


def update_store(
    *,
    writer: Writer,
    store_id: str,
    name: str | None = None,
    description: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> MemoryStore:
    """Describe a store anew; a new name moves its memories' scope along."""
    with transaction.atomic():
        store = get_store(writer=writer, store_id=store_id)
        if name is not None and name != store.name:
            _rename(writer, store, name)
        if description is not None:
            store.description = description
        if metadata is not None:
            store.metadata = metadata
        store.updated_at = clock.now()
        store.save(update_fields=["name", "description", "metadata", "updated_at"])
        _log(writer, "update store", store)
    return store


def _rename(writer: Writer, store: MemoryStore, name: str) -> None:
    if not name.strip() or len(name) > 500:
        raise InvalidMemory("A store's name takes 1 to 500 characters.")
    if MemoryStore.objects.filter(workspace=writer.workspace, name=name).exclude(pk=store.pk).exists():
        raise StoreNameTaken(f"There is a memory store named {name} already.")
    scope = revising.find_scope(writer.workspace, bind(ScopeNames(project=name), writer).as_dict())
    revisions = revising.begin(Memory.objects.filter(store=store).select_related("scope").order_by("id"))
    for revision in revisions:
        revision.memory.scope = scope
    revising.commit(writer=writer, action="rename store", revisions=revisions, now=clock.now())
    store.name = name


def archive_store(*, writer: Writer, store_id: str) -> MemoryStore:
    """Close a store for writing; reading goes on."""
    store = get_store(writer=writer, store_id=store_id)
    if store.archived_at is None:
        store.archived_at = store.updated_at = clock.now()
        store.save(update_fields=["archived_at", "updated_at"])
        _log(writer, "archive store", store)
    return store


def delete_store(*, writer: Writer, store_id: str) -> MemoryStore:
    """Remove a store; its memories go to the trash, in one change set."""
    with transaction.atomic():
        store = get_store(writer=writer, store_id=store_id)
        now = clock.now()
        rows = Memory.objects.filter(store=store).exclude(state=MemoryState.FORGOTTEN).select_related("scope")
        revisions = revising.begin(rows.order_by("id"))
        for revision in revisions:
            revising.set_state(revision, MemoryState.FORGOTTEN, now)
        revising.commit(writer=writer, action="delete store", revisions=revisions, now=now)
        _log(writer, "delete store", store)
        gone = MemoryStore(public_id=store.public_id, name=store.name)
        store.delete()
    return gone


def _log(writer: Writer, action: str, store: MemoryStore) -> None:
    record_event(
        workspace=writer.workspace,
        actor=writer.actor,
        action=action,
        subject_type="memory_store",
        subject_id=store.public_id,
        detail={"name": store.name},
    )
