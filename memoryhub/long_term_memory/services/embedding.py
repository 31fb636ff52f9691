"""Vectors for memories that have none of the current model: after an import, an outage, or a change of the embedder."""

from collections.abc import Callable

from django.db import transaction
from django.db.models import Q

from memoryhub.long_term_memory.models import Memory, SearchDocument
from memoryhub.long_term_memory.rows import execute_many
from memoryhub.long_term_memory.search import documents, embedders, selection, vectors
from memoryhub.long_term_memory.services.revisions import current_model_id
from memoryhub.workspaces.models import Workspace

BATCH = 100


def embed_missing(*, workspace: Workspace, on_progress: Callable[[int, int], None] | None = None) -> int:
    """Embed every memory that lacks a vector of the model in use, in small transactions; returns how many.

    Search keeps working meanwhile: a memory without a vector is found by its words. Safe to run again at any point.
    """
    embedder = embedders.current()
    model_id = current_model_id()
    if model_id is None:
        return 0
    rows = SearchDocument.objects.filter(workspace=workspace)
    rows = rows.filter(Q(vector__isnull=True) | Q(model__isnull=True) | ~Q(model_id=model_id))
    total = rows.count()
    done, last = 0, 0
    while keys := list(rows.filter(key__gt=last).order_by("key").values_list("key", flat=True)[:BATCH]):
        last = keys[-1]
        done += _embed_some(keys, embedder, model_id)
        if on_progress:
            on_progress(done, total)
    refresh_file(workspace)
    return done


def _embed_some(keys: list[int], embedder: embedders.Embedder, model_id: int) -> int:
    pks = [documents.memory_id_of(key) for key in keys]
    memories = {memory.document_key: memory for memory in Memory.objects.filter(pk__in=pks)}
    texts = {key: documents.embedding_text(memories[key]) for key in keys if key in memories}
    if not texts:
        return 0
    made = embedder.embed(list(texts.values()), "document")
    with transaction.atomic():
        # A text that changed since it was read has another hash; its own job embeds it.
        fresh = dict(Memory.objects.filter(pk__in=pks).values_list("pk", "content_sha256"))
        execute_many(
            "UPDATE long_term_memory_searchdocument SET vector = %s, model_id = %s WHERE key = %s",
            [
                (embedders.pack(vector), model_id, key)
                for key, vector in zip(texts, made, strict=True)
                if fresh.get(documents.memory_id_of(key)) == memories[key].content_sha256
            ],
        )
    return len(texts)


def refresh_file(workspace: Workspace) -> None:
    """Write the mapped file of a workspace that is too large to be read whole, where it fell behind."""
    embedder = embedders.current()
    model_id = current_model_id()
    if model_id is None:
        return
    rows = SearchDocument.objects.filter(workspace=workspace, model_id=model_id, vector__isnull=False)
    if rows[: selection.SMALL + 1].count() <= selection.SMALL:
        return
    dimensions = embedder.dimensions or len(embedder.embed(["size"], "document")[0])
    if vectors.count_in_file(workspace.pk, model_id, dimensions) != rows.count():
        vectors.rebuild_file(workspace.pk, model_id, dimensions)
