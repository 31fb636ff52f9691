"""Making, describing, archiving and deleting memory stores, the named shelves of Anthropic's memory-stores wire."""

from collections.abc import Mapping

from django.db import IntegrityError, transaction

from memoryhub.audit.services import record_event
from memoryhub.common import clock, errors, ids
from memoryhub.long_term_memory.models import MemoryState, MemoryStore, Scope
from memoryhub.long_term_memory.queries.files import files_of
from memoryhub.long_term_memory.queries.stores import scope_of_store
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.drafting import bind
from memoryhub.long_term_memory.services.writer import Writer

MAX_NAME_CHARS = 255
MAX_DESCRIPTION_CHARS = 1024
MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARS = 64
MAX_METADATA_VALUE_CHARS = 512
CHUNK = 500
TRIES = 3


class InvalidStore(errors.Invalid):
    slug = "invalid-store"
    title = "This memory store can't be kept"


class StoreArchived(errors.Invalid):
    slug = "store-archived"
    title = "The memory store is archived"


def create_store(
    *, writer: Writer, name: str, description: str = "", metadata: Mapping[str, str] | None = None
) -> MemoryStore:
    """A new store. A name may repeat; the scope of its memories does not."""
    _check_name(name)
    _check_description(description)
    _check_metadata(metadata or {})
    for _ in range(TRIES - 1):
        try:
            return _make_store(writer, name, description, metadata or {})
        except IntegrityError:
            continue  # somebody made a store of this name at the same moment: this one's scope is told apart
    return _make_store(writer, name, description, metadata or {})


def _make_store(writer: Writer, name: str, description: str, metadata: Mapping[str, str]) -> MemoryStore:
    now = clock.now()
    public_id = ids.new_id("memstore")
    with transaction.atomic():
        taken = MemoryStore.objects.filter(workspace=writer.workspace, project=name).exists()
        store = MemoryStore(
            workspace=writer.workspace,
            public_id=public_id,
            name=name,
            project=f"{name} ({public_id})" if taken else name,
            description=description,
            metadata=dict(metadata),
            created_at=now,
            updated_at=now,
        )
        bind(scope_of_store(store), writer.binding)
        store.save(force_insert=True)
        _note(writer, "create_store", store)
    return store


def update_store(
    *,
    writer: Writer,
    store: MemoryStore,
    name: str | None = None,
    description: str | None = None,
    metadata: Mapping[str, str | None] | None = None,
) -> MemoryStore:
    """Describe a store anew; None leaves a field, and a metadata key set to None goes.

    Its memories stay as they are: they keep the scope that the store was made with.
    """
    refuse_archived(store)
    if name is not None:
        store.name = _check_name(name)
    if description is not None:
        store.description = _check_description(description)
    if metadata is not None:
        merged = {**store.metadata, **metadata}
        store.metadata = _check_metadata({key: value for key, value in merged.items() if value is not None})
    store.updated_at = clock.now()
    with transaction.atomic():
        store.save(update_fields=["name", "description", "metadata", "updated_at"])
        _note(writer, "update_store", store)
    return store


def archive_store(*, writer: Writer, store: MemoryStore) -> MemoryStore:
    """Close a store for writing, for good; archiving it again changes nothing."""
    if store.archived_at is None:
        store.archived_at = store.updated_at = clock.now()
        with transaction.atomic():
            store.save(update_fields=["archived_at", "updated_at"])
            _note(writer, "archive_store", store)
    return store


def delete_store(*, writer: Writer, store: MemoryStore, scope: Scope | None) -> int:
    """Remove a store and move its memories to the trash, as one change set; returns how many."""
    count = 0
    with transaction.atomic():
        now = clock.now()
        change_set = None
        while memories := list(files_of(scope)[:CHUNK]):
            forgotten = revising.begin(memories)
            for revision in forgotten:
                revising.set_state(revision, MemoryState.FORGOTTEN, now)
            change_set = revising.commit(
                writer=writer, action="delete_store", revisions=forgotten, now=now, change_set=change_set
            )
            count += len(memories)
        _note(writer, "delete_store", store)
        store.delete()
    return count


def refuse_archived(store: MemoryStore) -> None:
    """Raise StoreArchived for a store that is closed for writing."""
    if store.archived_at is not None:
        raise StoreArchived("The memory store is archived: it can be read and deleted, but not changed.")


def _check_name(name: str) -> str:
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.strip() or any(ord(c) < 32 or ord(c) == 127 for c in name):
        raise InvalidStore(f"name takes 1 to {MAX_NAME_CHARS} characters, none of them control characters.")
    return name


def _check_description(description: str) -> str:
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise InvalidStore(f"description takes at most {MAX_DESCRIPTION_CHARS} characters.")
    return description


def _check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    if len(metadata) > MAX_METADATA_PAIRS:
        raise InvalidStore(f"metadata takes at most {MAX_METADATA_PAIRS} pairs.")
    for key, value in metadata.items():
        if not 1 <= len(key) <= MAX_METADATA_KEY_CHARS:
            raise InvalidStore(f"A metadata key takes 1 to {MAX_METADATA_KEY_CHARS} characters.")
        if len(value) > MAX_METADATA_VALUE_CHARS:
            raise InvalidStore(f"A metadata value takes at most {MAX_METADATA_VALUE_CHARS} characters.")
    return dict(metadata)


def _note(writer: Writer, action: str, store: MemoryStore) -> None:
    record_event(
        workspace=writer.workspace,
        actor=writer.actor,
        action=action,
        subject_type="memory_store",
        subject_id=store.public_id,
        detail={"name": store.name},
    )
