"""Looking back: memories in the form that they had at an earlier moment, for searches with `as_of`.

What was not written since is searched as it stands. What was written since is judged by the version of that moment: its
text, subject, tags, kind, importance, state, trust and scope. When a memory was true is taken as it is known today, so a
correction of `valid_until` counts for the past as well.
"""

# ruff: noqa: S608 - only names of our own tables and columns are put into statements; values are bound

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection
from django.db.models import Max, Q

from memoryhub.long_term_memory.domain.forms import TIMES, unpack_time
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import (
    MEMORY_MASK,
    Memory,
    MemoryQuerySet,
    MemoryState,
    MemoryTag,
    MemoryVersion,
    Scope,
    Tag,
    Trust,
)
from memoryhub.long_term_memory.search import documents, embedders
from memoryhub.long_term_memory.search.base import Where
from memoryhub.long_term_memory.search.pool import Row, fetch_keys
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.workspaces.models import Workspace

MAX_CHANGED = 10_000  # memories written since that one search looks into, those written last first
MOST_EMBEDDED = 100  # earlier texts that get a vector for one search; more are found by their words
CHUNK = 400
NOTE = "as_of_partial"


@dataclass(frozen=True, slots=True)
class Past:
    """The changed memories that a search may return, by row id, and their rows for the pool."""

    forms: dict[int, Memory] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def unchanged_since(at: datetime) -> Where:
    """The condition that a document's memory stands as it stood then."""
    moment = Memory._meta.get_field("content_changed_at").get_db_prep_value(at, connection)
    return Where(
        f"NOT EXISTS (SELECT 1 FROM long_term_memory_memory h WHERE h.id = (d.key & {MEMORY_MASK}) AND "
        "(h.content_changed_at > %s OR h.metadata_changed_at > %s OR (h.state = 'archived' AND h.state_since > %s)))",
        [moment, moment, moment],
    )


def look_back(workspace: Workspace, request: SearchRequest, now: datetime, model_id: int | None) -> Past:
    """What a search with `as_of` may return of the memories that were written since, in their form of that moment."""
    at = request.as_of
    if at is None:
        return Past()
    rows = _changed(workspace, request, at, now)
    memories = list(rows.select_related("scope", "session").order_by("-content_changed_at", "-id")[: MAX_CHANGED + 1])
    notes = [NOTE] if len(memories) > MAX_CHANGED else []
    forms = {memory.pk: form for memory, form in forms_at(memories[:MAX_CHANGED], at) if _passes(form, request)}
    today = {memory.pk: memory for memory in memories if memory.pk in forms}
    return Past(forms, _rows(today, forms, model_id), notes)


def form_at(memory: Memory, at: datetime) -> Memory | None:
    """A memory as it stood at a moment: itself where it was not written since, None where its form is not known any more."""
    archived_since = memory.state == MemoryState.ARCHIVED and memory.state_since > at
    if memory.content_changed_at <= at and memory.metadata_changed_at <= at and not archived_since:
        return memory
    return next((form for _, form in forms_at([memory], at)), None)


def forms_at(memories: Sequence[Memory], at: datetime) -> Iterable[tuple[Memory, Memory]]:
    """(memory, unsaved copy in its earlier form) for those whose version of that moment was not redacted.

    A memory that came with an earlier date than its first version had that version's form from that date on.
    """
    versions = _versions_at([memory.pk for memory in memories], at)
    for memory in memories:
        version = versions.get(memory.pk)
        if version is not None and version.content is not None:
            yield memory, _form(memory, version)


def _changed(workspace: Workspace, request: SearchRequest, at: datetime, now: datetime) -> MemoryQuerySet:
    """Memories that stood then, were written since, and may be told today."""
    rows = Memory.objects.filter(workspace=workspace, created_at__lte=at).out_of_trash()
    rows = rows.filter(
        Q(content_changed_at__gt=at) | Q(metadata_changed_at__gt=at) | Q(state=MemoryState.ARCHIVED, state_since__gt=at)
    )
    rows = rows.filter(Q(expires_at=None) | Q(expires_at__gt=now), Q(valid_from=None) | Q(valid_from__lte=at))
    in_time = Q(valid_until=None) | Q(valid_until__gt=at)
    if "superseded" in request.include:
        rows = rows.filter(in_time | Q(superseded_at__isnull=False))
    else:
        rows = rows.filter(in_time, Q(superseded_at=None) | Q(superseded_at__gt=at))
    if "quarantined" not in request.include:
        rows = rows.exclude(trust=Trust.QUARANTINED)
    if request.scope:
        rows = rows.filter(scope__in=Scope.objects.filter(workspace=workspace, **request.scope.named()))
    if request.session is not None:
        rows = rows.filter(session__sid=request.session)
    if request.since is not None:
        rows = rows.filter(created_at__gte=request.since)
    if request.until is not None:
        rows = rows.filter(created_at__lt=request.until)
    return rows


def _passes(form: Memory, request: SearchRequest) -> bool:
    """Whether the earlier form meets the filters; the scope must hold then and now."""
    states = {MemoryState.ACTIVE, MemoryState.FADING, *(["archived"] if "archived" in request.include else [])}
    if request.states:
        states = {*request.states, *(["archived"] if "archived" in request.include else [])}
        states |= {MemoryState.ACTIVE} if MemoryState.FADING in states else set()  # a version does not know fading
    tags = {link.tag.name for link in form.memory_tags.all()}
    return (
        form.state in states
        and (form.trust != Trust.QUARANTINED or "quarantined" in request.include)
        and request.scope.covers(ScopeNames(**form.scope.as_dict()))
        and set(request.tags) <= tags
        and (not request.tags_any or bool(tags & set(request.tags_any)))
        and not tags & set(request.tags_none)
        and (not request.kinds or form.kind in request.kinds)
        and (request.importance_gte is None or form.importance >= request.importance_gte)
    )


def _versions_at(pks: Sequence[int], at: datetime) -> dict[int, MemoryVersion]:
    """The version of each memory that stood at a moment, else its first."""
    found: dict[int, MemoryVersion] = {}
    for start in range(0, len(pks), CHUNK):
        rows = MemoryVersion.objects.filter(memory_id__in=pks[start : start + CHUNK])
        last = dict(
            rows.filter(Q(created_at__lte=at) | Q(number=1)).values_list("memory_id").annotate(last=Max("number"))
        )
        wanted = rows.filter(number__in=set(last.values()))
        found |= {row.memory_id: row for row in wanted if last.get(row.memory_id) == row.number}
    return found


def _form(memory: Memory, version: MemoryVersion) -> Memory:
    """A copy of a memory that says what a version says; it is shown and never saved."""
    form, facts = copy.copy(memory), version.facts
    form._state = copy.copy(memory._state)
    form._state.fields_cache = dict(memory._state.fields_cache)
    form.content, form.content_sha256 = version.content or "", version.content_sha256
    form.version = version.number
    for name in ("subject", "kind", "importance", "pinned", "path", "state", "trust"):
        if name in facts:
            setattr(form, name, facts[name])
    for name in TIMES:
        if name in facts:
            setattr(form, name, unpack_time(facts[name]))
    form.content_changed_at = min(memory.content_changed_at, version.created_at)
    form.metadata_changed_at = version.created_at
    if version.number == 1:
        form.content_changed_at = form.metadata_changed_at = memory.created_at
    form.superseded_by_id = facts.get("superseded_by")
    if form.superseded_by_id is None:
        form.superseded_at = None
    form.scope = _scope(memory.scope, facts.get("scope"))
    tags = [MemoryTag(tag=Tag(name=name)) for name in facts.get("tags", ())]
    form._prefetched_objects_cache = {"memory_tags": tags}  # type: ignore[attr-defined]
    return form


def _scope(today: Scope, names: Mapping[str, str | None] | None) -> Scope:
    if names is None or dict(names) == today.as_dict():
        return today
    return Scope(workspace_id=today.workspace_id, **{name: value or "" for name, value in names.items()})


def _rows(today: Mapping[int, Memory], forms: Mapping[int, Memory], model_id: int | None) -> list[Row]:
    """The pool's rows of earlier forms: today's document where the text is the same, else one made of the earlier text."""
    rows = fetch_keys([memory.document_key for memory in today.values()], model_id=model_id)
    reworded = [
        documents.memory_id_of(row.key)
        for row in rows
        if _text(today[documents.memory_id_of(row.key)]) != _text(forms[documents.memory_id_of(row.key)])
    ]
    vectors = _embed([forms[pk] for pk in reworded]) if model_id is not None else {}
    changed = set(reworded)
    return [
        _row(row, forms[pk], vectors.get(pk)) if (pk := documents.memory_id_of(row.key)) in changed
        else row._replace(importance=forms[pk].importance)
        for row in rows
    ]  # fmt: skip


def _text(memory: Memory) -> tuple[str, str]:
    return memory.subject, memory.content


def _row(row: Row, form: Memory, vector: bytes | None) -> Row:
    read = documents.read_text(form.content, form.subject, form.created_at.date())
    return row._replace(
        importance=form.importance,
        word_count=read.word_count,
        token_count=read.token_count,
        is_question=read.is_question,
        has_context=False,
        terms=read.terms,
        counts=read.counts,
        vector=vector,
    )


def _embed(forms: Sequence[Memory]) -> dict[int, bytes]:
    """Vectors of a few earlier texts; of many, or without an embedder, none."""
    if not forms or len(forms) > MOST_EMBEDDED:
        return {}
    try:
        made = embedders.current().embed([documents.embedding_text(form) for form in forms], "document")
    except embedders.EmbedderUnavailable:
        return {}
    return {form.pk: embedders.pack(vector) for form, vector in zip(forms, made, strict=True)}
