"""Searching memories, and saying why one was or was not found. Reading only: nothing here counts as an access."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from memoryhub.common import errors
from memoryhub.common.tokens import estimate_tokens
from memoryhub.long_term_memory.domain import ranking, rendering
from memoryhub.long_term_memory.domain.ranking import DEFAULT_WEIGHTS, Weights
from memoryhub.long_term_memory.domain.scoping import ScopeClash
from memoryhub.long_term_memory.models import Memory, MemoryState, RecallReceipt, Trust
from memoryhub.long_term_memory.queries.memories import (
    MemoryFilter,
    get_memory,
    list_memories,
    tag_names,
)
from memoryhub.long_term_memory.search import documents, engine, history
from memoryhub.long_term_memory.search.request import INCLUDES, MAX_LIMIT, SEARCHABLE_STATES, SearchRequest
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Binding, OutsideBinding

WEIGHTS_KEY = "recall_weights"


class InvalidSearch(errors.Invalid):
    slug = "invalid-search"
    title = "This search can't be run"


@dataclass(frozen=True, slots=True)
class Hit:
    """One found memory with its score; `explanation` says how the score came about, where it was asked for.

    A search with `as_of` gives memories that were written since in their `earlier` form: a copy that is only shown.
    """

    memory: Memory
    score: float
    parts: dict[str, float]
    rank: int
    explanation: dict[str, Any] | None = None
    earlier: Memory | None = None

    @property
    def shown(self) -> Memory:
        """What the search tells of the memory."""
        return self.earlier or self.memory


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: list[Hit]
    notes: list[str] = field(default_factory=list)  # e.g. embedder_unavailable: found by words only


@dataclass(frozen=True, slots=True)
class WhyNot:
    """The step that removed a memory from a search, or its rank."""

    step: str  # scope | filter | state | expired | superseded | candidates | rank | returned
    sentence: str  # English, with %(names) of `values`; the pages translate it
    rank: int | None = None
    parts: dict[str, float] | None = None
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def detail(self) -> str:
        """The sentence in English, filled in."""
        told = {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in self.values.items()
        }
        return self.sentence % told


def _(sentence: str) -> str:
    """Mark a sentence for translation; the pages translate it where it is shown."""
    return sentence


def get_default_weights(workspace: Workspace) -> Weights:
    """The workspace's weights, as saved on the search bench, or the product's."""
    stored = workspace.settings.get(WEIGHTS_KEY)
    return Weights(**stored) if stored else DEFAULT_WEIGHTS


def search_memories(
    workspace: Workspace,
    request: SearchRequest,
    *,
    now: datetime,
    binding: Binding | None = None,
    explain: bool = False,
) -> SearchResult:
    """The best memories for a query, in order. The same request over the same memories gives the same answer."""
    inside = checked(request, binding)
    found = engine.rank(workspace, inside, now)
    rows = found.best(inside.limit, inside.weights)
    keys = [int(found.pool.keys[row]) for row in rows]
    memories = _load(workspace, keys)
    hits = [
        Hit(
            memory=memories[documents.memory_id_of(key)],
            score=float(found.scores.score[row]),
            parts=found.scores.parts(row),
            rank=rank,
            explanation=ranking.explain(found.scores, row, inside.weights) if explain else None,
            earlier=found.forms.get(documents.memory_id_of(key)),
        )
        for rank, (row, key) in enumerate(zip(rows, keys, strict=True), start=1)
        if documents.memory_id_of(key) in memories
    ]
    for hit in hits if inside.as_of is not None else ():
        if hit.explanation is not None:
            hit.explanation["version"] = {"number": hit.shown.version, "current": hit.earlier is None}
    return SearchResult(hits, found.notes)


def checked(request: SearchRequest, binding: Binding | None) -> SearchRequest:
    """The request inside the key's binding; raises for what can't be asked."""
    try:
        request.weights.validated()
        scope = request.scope.check()
        if binding is not None:
            scope = scope.within(agent=binding.agent, user=binding.user, project=binding.project)
    except ScopeClash as error:
        raise OutsideBinding(f"This lies outside: {error}.") from error
    except ValueError as error:
        raise InvalidSearch(f"{error}.") from error
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidSearch(f"limit must lie between 1 and {MAX_LIMIT}.")
    for name in request.include:
        if name not in INCLUDES:
            raise InvalidSearch(f"include takes {', '.join(INCLUDES)}.")
    for state in request.states:
        if state not in SEARCHABLE_STATES:
            raise InvalidSearch(f"state takes {', '.join(SEARCHABLE_STATES)}; the trash is not searched.")
    for kind in request.kinds:
        if kind not in documents.KIND_CODES:
            raise InvalidSearch(f"kind takes {', '.join(documents.KIND_CODES)}.")
    if request.weights.relevance > 0 and not request.query.strip():
        others = replace(request.weights, relevance=0.0)
        if others.total <= 0:
            raise InvalidSearch("query must not be empty where relevance has weight.")
        return replace(request, scope=scope, weights=others)
    return replace(request, scope=scope)


def _load(workspace: Workspace, keys: Sequence[int]) -> dict[int, Memory]:
    rows = Memory.objects.filter(workspace=workspace, pk__in=[documents.memory_id_of(key) for key in keys])
    rows = rows.select_related("scope", "session", "superseded_by").prefetch_related("memory_tags__tag")
    return {memory.pk: memory for memory in rows}


def explain_absence(
    workspace: Workspace, request: SearchRequest, memory_id: str, *, now: datetime, binding: Binding | None = None
) -> WhyNot:
    """Why a memory is not among the results of a search: the step that removed it, or its rank with its scores."""
    inside = checked(request, binding)
    memory = get_memory(workspace, memory_id, binding=binding, in_trash=True)
    removed = _removed_by(memory, inside, now)
    if removed is not None:
        return removed
    found = engine.rank(workspace, inside, now)
    key = memory.document_key
    at = [row for row, value in enumerate(found.pool.keys.tolist()) if value == key]
    if not at:
        sentence = _(
            "The filters let it pass, but it shares no rare word with the query and its meaning is too far away."
        )
        return WhyNot("candidates", sentence)
    row = at[0]
    parts = found.scores.parts(row)
    if inside.weights.relevance > 0 and not found.scores.matches[row]:
        return WhyNot("candidates", _("It shares no word with the query and its meaning is too far away."), None, parts)
    order = found.best(len(found.pool), inside.weights)
    rank = order.index(row) + 1
    if rank <= inside.limit:
        return WhyNot("returned", _("It is number %(rank)s of the results."), rank, parts, {"rank": rank})
    values = {"rank": rank, "limit": inside.limit}
    return WhyNot("rank", _("It is number %(rank)s; the search returns %(limit)s."), rank, parts, values)


def _removed_by(memory: Memory, request: SearchRequest, now: datetime) -> WhyNot | None:
    """The first condition of a search that a memory does not meet."""
    at = request.as_of or now
    form = memory if request.as_of is None or memory.created_at > request.as_of else history.form_at(memory, at)
    if form is None:
        return WhyNot("state", _("Its content of that moment was redacted."))
    for scope in (memory.scope, form.scope):
        names = scope.as_dict()
        for name, value in request.scope.named().items():
            if names[name] != value:
                values = {"name": name, "value": value, "has": names[name] or "none"}
                sentence = _("The search names %(name)s '%(value)s'; the memory has %(has)s.")
                return WhyNot("scope", sentence, values=values)
    standing = _standing(memory, form, request, now, at)
    return standing or _filtered(form, request)


def _standing(memory: Memory, form: Memory, request: SearchRequest, now: datetime, at: datetime) -> WhyNot | None:
    """State and trust as they were at the moment the search looks to; validity as it is known today."""
    states = list(request.states) or [MemoryState.ACTIVE, MemoryState.FADING]
    archived_too = "archived" in request.include or MemoryState.ARCHIVED in states
    if MemoryState.FORGOTTEN in (memory.state, form.state):
        return WhyNot(
            "state", _("It is in the trash.") if memory.state == form.state else _("It was in the trash then.")
        )
    if form.state == MemoryState.ARCHIVED and not archived_too:
        return WhyNot("state", _("It is archived; `include` can bring archived memories in."))
    if form.state in (MemoryState.ACTIVE, MemoryState.FADING):
        looked_for = {*states, MemoryState.ACTIVE} if form is not memory and "fading" in states else set(states)
        if form.state not in looked_for:
            values = {"state": form.state, "states": ", ".join(states)}
            return WhyNot("filter", _("It is %(state)s; the filter asks for %(states)s."), values=values)
        if form is memory and not archived_too and memory.archives_at is not None and memory.archives_at <= at:
            return WhyNot("state", _("Its strength fell below the archive threshold."))
    if Trust.QUARANTINED in (memory.trust, form.trust) and "quarantined" not in request.include:
        return WhyNot("state", _("It is quarantined and waits for review."))
    if memory.expires_at is not None and memory.expires_at <= now:
        return WhyNot("expired", _("It expired at %(at)s."), values={"at": memory.expires_at})
    with_superseded = "superseded" in request.include
    if memory.superseded_at is not None and memory.superseded_at <= at and not with_superseded:
        if memory.superseded_by is None:
            return WhyNot("superseded", _("It was superseded by a newer memory."))
        values = {"newer": memory.superseded_by.public_id}
        return WhyNot("superseded", _("It was superseded by %(newer)s."), values=values)
    if memory.valid_until is not None and memory.valid_until <= at and not (with_superseded and memory.superseded_at):
        return WhyNot("expired", _("It was valid until %(at)s."), values={"at": memory.valid_until})
    if memory.valid_from is not None and memory.valid_from > at:
        return WhyNot("expired", _("It is valid from %(at)s on."), values={"at": memory.valid_from})
    if request.as_of is not None and memory.created_at > request.as_of:
        return WhyNot("filter", _("It was stored after the moment that the search looks back to."))
    return None


def _filtered(memory: Memory, request: SearchRequest) -> WhyNot | None:
    tags = set(tag_names(memory))
    lacking = [tag for tag in request.tags if tag not in tags]
    values = {"tag": lacking[0] if lacking else "", "kind": memory.kind, "importance": f"{memory.importance:g}"}
    checks = [
        (bool(lacking), _("It lacks the tag '%(tag)s'.")),
        (bool(request.tags_any) and not tags & set(request.tags_any), _("It has none of the tags asked for.")),
        (bool(tags & set(request.tags_none)), _("It has a tag that the filter excludes.")),
        (bool(request.kinds) and memory.kind not in request.kinds, _("Its kind is %(kind)s.")),
        (
            request.session is not None and (memory.session is None or memory.session.sid != request.session),
            _("It comes from another session."),
        ),
        (request.since is not None and memory.created_at < request.since, _("It is older than the filter asks for.")),
        (request.until is not None and memory.created_at >= request.until, _("It is newer than the filter asks for.")),
        (
            request.importance_gte is not None and memory.importance < request.importance_gte,
            _("Its importance is %(importance)s."),
        ),
    ]
    for removed, sentence in checks:
        if removed:
            return WhyNot("filter", sentence, values=values)
    return None


@dataclass(frozen=True, slots=True)
class Rendered:
    """Memories as one block for a context window."""

    text: str
    memories: list[dict[str, Any]]  # {"id", "version"}
    tokens: int


def render_memories(memories: Sequence[Memory]) -> Rendered:
    """The block of these memories; the same memories give the same bytes, in whatever order they come."""
    unique = {memory.public_id: memory for memory in memories}
    text = rendering.render(
        rendering.RenderedMemory(memory.public_id, memory.version, memory.content, memory.subject)
        for memory in unique.values()
    )
    listed = [
        {"id": memory.public_id, "version": memory.version}
        for memory in sorted(unique.values(), key=lambda m: m.public_id)
    ]
    return Rendered(text, listed, estimate_tokens(text))


def find_renderable(
    workspace: Workspace, ids: Sequence[str], *, now: datetime, binding: Binding | None = None
) -> list[Memory]:
    """Those of the named memories that an agent may be told now: what a search without `include` could return."""
    rows = list_memories(workspace, MemoryFilter(ids=list(ids)), binding=binding, few=True)
    anything = SearchRequest(query="")
    return [memory for memory in rows if _standing(memory, memory, anything, now, now) is None]


def list_recalls(
    workspace: Workspace, *, session: str | None = None, binding: Binding | None = None
) -> QuerySet[RecallReceipt]:
    """Receipts with their lines, in no order yet; a bound key sees recalls inside its binding."""
    rows = RecallReceipt.objects.filter(workspace=workspace).select_related("session")
    if session is not None:
        rows = rows.filter(session__sid=session)
    for name in ("agent", "user", "project"):
        bound = getattr(binding, name, None)
        if bound:
            rows = rows.filter(**{f"scope__{name}": bound})
    return rows.prefetch_related("items__memory")
