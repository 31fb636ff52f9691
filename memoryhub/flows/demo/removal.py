"""Taking a workspace away with every row of it, whichever room the row lies in.

Rooms protect their rows from deletion by accident, so a cascade stops there. Here the tables are found by their foreign
keys, so that a table that is added later is emptied as well (a test compares all tables before and after).
"""

from collections import deque
from collections.abc import Iterator

from django.apps import apps
from django.db import models, transaction
from django.db.models import ForeignKey

from memoryhub.long_term_memory.models import SearchDocument
from memoryhub.long_term_memory.search.documents import index_tokens
from memoryhub.long_term_memory.search.index import term_index
from memoryhub.workspaces.models import Tally, Workspace

CHUNK = 500


@transaction.atomic
def remove_workspace(workspace: Workspace) -> int:
    """Remove the workspace and everything in it, in one transaction; returns how many rows that were.

    1. The full-text index, which knows no foreign keys. 2. All tables, those first that hang deepest below the workspace.
    3. The workspace. Foreign keys are checked at the commit, so rows that name each other go together.
    """
    _remove_terms(workspace)
    removed = _delete(Tally.objects.filter(key__startswith=f"writes:{workspace.pk}:"))  # knows no foreign keys either
    for model, path in sorted(workspace_paths().items(), key=lambda entry: -entry[1].count("__")):
        removed += _delete(model._base_manager.filter(**{path: workspace.pk}))
    return removed + _delete(Workspace.objects.filter(pk=workspace.pk))


def workspace_paths() -> dict[type[models.Model], str]:
    """Return for every model that belongs to a workspace the shortest way to it, e.g. `session__workspace`."""
    paths: dict[type[models.Model], str] = {}
    waiting: deque[tuple[type[models.Model], str]] = deque([(Workspace, "")])
    while waiting:
        above, path = waiting.popleft()
        for model, field in _pointing_at(above):
            if model not in paths and model is not Workspace:
                paths[model] = f"{field.name}__{path}" if path else field.name
                waiting.append((model, paths[model]))
    return paths


def _pointing_at(above: type[models.Model]) -> Iterator[tuple[type[models.Model], "ForeignKey[object, object]"]]:
    """Yield the models that can't be without a row of this one; what may be null does not own the row."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            owns = not field.null or above is Workspace
            if isinstance(field, ForeignKey) and field.related_model is above and owns:
                yield model, field


def _remove_terms(workspace: Workspace) -> None:
    rows = SearchDocument.objects.filter(workspace=workspace).iterator(chunk_size=CHUNK)
    batch: list[SearchDocument] = []
    for row in rows:
        batch.append(row)
        if len(batch) == CHUNK:
            _take_out(batch)
    _take_out(batch)


def _take_out(batch: list[SearchDocument]) -> None:
    if batch:
        term_index().remove([(row.key, index_tokens(row)) for row in batch])
        batch.clear()


def _delete(rows: "models.QuerySet[models.Model]") -> int:
    """Delete rows by one statement: no cascade (all tables are emptied anyway), no row is read."""
    return rows._raw_delete(rows.db)
