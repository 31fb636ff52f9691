"""The search bench: what a recall would return and why, why one memory is missing, and the weights to try."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import push_url

from memoryhub.common import clock, errors
from memoryhub.long_term_memory.domain.ranking import Weights
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Kind, MemoryState
from memoryhub.long_term_memory.queries import memories as queries
from memoryhub.long_term_memory.queries import recall
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services.recalling import save_default_weights
from memoryhub.web import formats, memory_rows
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.htmx import wants_part
from memoryhub.web.memory_actions import writer_of
from memoryhub.web.memory_filters import MemoryFilters, clean_text
from memoryhub.web.score_bars import ScoreBar, bar_of, legend
from memoryhub.web.tidy_urls import tidied

LIMITS = (5, 10, 20, 50)
DEFAULT_LIMIT = 10
PARTS: dict[str, Any] = {
    "relevance": gettext_lazy("Relevance"),
    "recency": gettext_lazy("Recency"),
    "importance": gettext_lazy("Strength"),
    "access": gettext_lazy("Use"),
}
PART_MEANINGS: dict[str, Any] = {
    "relevance": gettext_lazy("how well words and meaning fit the query"),
    "recency": gettext_lazy("how young it is"),
    "importance": gettext_lazy("its importance after fading"),
    "access": gettext_lazy("how often agents recalled it"),
}
STEPS: dict[str, Any] = {
    "scope": gettext_lazy("It belongs to another scope than the search names."),
    "filter": gettext_lazy("A filter takes it out."),
    "state": gettext_lazy("Its state keeps it from being recalled."),
    "expired": gettext_lazy("It is not valid at this moment."),
    "superseded": gettext_lazy("A newer memory took its place."),
    "candidates": gettext_lazy("It has no word in common with the query, and its meaning is too far away."),
    "rank": gettext_lazy("It is found, but others rank higher than the number of results asked for."),
    "returned": gettext_lazy("It is among the results."),
}
# Values in the sentence that says why a memory is missing, in people's words.
WHY_WORDS: dict[str, dict[Any, Any]] = {
    "name": {
        "agent": gettext_lazy("the agent"),
        "user": gettext_lazy("the user"),
        "project": gettext_lazy("the project"),
    },
    "has": {"none": pgettext_lazy("a scope of a memory", "none")},
    "state": {str(state): state.label for state in MemoryState},
    "kind": {str(kind): kind.label for kind in Kind},
}
NOTES = {
    "as_of_partial": gettext_lazy(
        "Very much was written since that moment: of it, only what was written last is looked through."
    ),
    "embedder_unavailable": gettext_lazy("The embedder does not answer: this was found by words only, not by meaning."),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """What the bench asks, as its address says it."""

    q: str
    scope: ScopeNames
    tags: tuple[str, ...]
    limit: int
    weights: Weights
    why: str
    own_weights: bool
    as_of: datetime | None = None

    @classmethod
    def read(cls, query: QueryDict, defaults: Weights) -> "Bench":
        """Return what an address asks for; weights that make no sense fall back to the workspace's."""
        texts = {name: clean_text(query.get(name, "")) for name in ("q", "agent", "user", "project", "why")}
        limit = query.get("limit", "")
        tags = tuple(
            dict.fromkeys(tag for part in query.getlist("tag") for raw in part.split(",") if (tag := clean_text(raw)))
        )
        weights = _weights(query, defaults)
        return cls(
            q=texts["q"],
            scope=ScopeNames(texts["agent"] or None, texts["user"] or None, texts["project"] or None),
            tags=tags,
            limit=int(limit) if limit in map(str, LIMITS) else DEFAULT_LIMIT,
            weights=weights,
            why=texts["why"],
            own_weights=weights != defaults,
            as_of=_moment(query.get("as_of", "")),
        )

    @property
    def asks(self) -> bool:
        """Tell whether there is anything to search for."""
        return bool(self.q)

    @property
    def as_of_text(self) -> str:
        """The moment to look back to as a field holds it, in the viewer's zone."""
        return timezone.localtime(self.as_of).strftime("%Y-%m-%dT%H:%M") if self.as_of else ""

    def url(self, defaults: Weights) -> str:
        """Return the address of the bench as it is, with only what differs from the default."""
        shares = self.weights.as_dict()
        own = {f"w_{name}": f"{value:g}" for name, value in shares.items() if value != defaults.as_dict()[name]}
        plain = {
            "q": self.q,
            **self.scope.named(),
            "limit": "" if self.limit == DEFAULT_LIMIT else str(self.limit),
            "as_of": self.as_of_text,
            "why": self.why,
        }
        query = [(name, value) for name, value in {**plain, **own}.items() if value]
        query += [("tag", tag) for tag in self.tags]
        return f"{reverse('search')}?{urlencode(query)}" if query else reverse("search")

    def request(self) -> SearchRequest:
        """Return the search that a recall with these values would run."""
        return SearchRequest(
            query=self.q, scope=self.scope, tags=self.tags, limit=self.limit, weights=self.weights, as_of=self.as_of
        )


def _moment(text: str) -> datetime | None:
    """Return a moment of the viewer's zone; what is none asks for now."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if found.tzinfo is not None or not 1970 <= found.year <= 2999:
        return None
    return timezone.make_aware(found)


def _weights(query: QueryDict, defaults: Weights) -> Weights:
    given = {name: query.get(f"w_{name}", "") for name in PARTS if f"w_{name}" in query}
    try:
        return Weights(**{**defaults.as_dict(), **{name: float(text) for name, text in given.items()}}).validated()
    except ValueError:
        return defaults


@dataclass(frozen=True, slots=True)
class HitRow:
    """One result with the parts of its score."""

    rank: int
    row: memory_rows.MemoryRow
    score: float
    bar: ScoreBar
    why_url: str
    asked: bool
    words: float
    meaning: float


@require_GET
@member("viewer")
@tidied
def search(request: MemberRequest) -> HttpResponse:
    """The bench; searching here is reading only and never counts as a recall."""
    workspace, now = request.principal.workspace, clock.now()
    defaults = recall.get_default_weights(workspace)
    bench = Bench.read(request.GET, defaults)
    context: dict[str, Any] = {
        "bench": bench,
        "limits": LIMITS,
        "weights": _sliders(bench),
        "legend": legend(PARTS),
        "may_edit": request.principal.role in ("editor", "admin"),
        "agents": queries.list_distinct_scopes(workspace, dimension="agent"),
        "users": queries.list_distinct_scopes(workspace, dimension="user"),
        "projects": queries.list_distinct_scopes(workspace, dimension="project"),
    }
    if bench.asks:
        try:
            result = recall.search_memories(workspace, bench.request(), now=now, explain=True)
            context["hits"] = [_hit(hit, bench, request) for hit in result.hits]
            context["notes"] = [NOTES[note] for note in result.notes if note in NOTES]
            context["why"] = _why(request, bench) if bench.why else None
        except (errors.Invalid, errors.NotFound) as error:
            context["problem"] = error.detail
    if not wants_part(request):
        return render(request, "long_term_memory/search.html", context)
    response = render(request, "long_term_memory/search.html#results", context)
    return push_url(response, bench.url(defaults))


def _sliders(bench: Bench) -> list[dict[str, Any]]:
    values = bench.weights.as_dict()
    top = max(1.0, *values.values())
    return [
        {"name": name, "label": label, "meaning": PART_MEANINGS[name], "value": values[name], "max": top}
        for name, label in PARTS.items()
    ]


def _hit(hit: recall.Hit, bench: Bench, request: MemberRequest) -> HitRow:
    query = request.GET.copy()
    query["why"] = hit.memory.public_id
    relevance = (hit.explanation or {}).get("relevance", {})
    return HitRow(
        rank=hit.rank,
        row=memory_rows.row_of(hit.shown, MemoryFilters(), clock.now()),
        score=hit.score,
        bar=bar_of(hit.parts, bench.weights, PARTS, score=hit.score),
        why_url=f"{reverse('search')}?{query.urlencode()}",
        asked=hit.memory.public_id == bench.why,
        words=relevance.get("words", 0.0),
        meaning=relevance.get("meaning", 0.0),
    )


def _why(request: MemberRequest, bench: Bench) -> dict[str, Any]:
    """Return the step that kept a memory out, in words, with its scores where it got that far."""
    workspace = request.principal.workspace
    memory = queries.get_memory(workspace, bench.why, in_trash=True)
    answer = recall.explain_absence(workspace, bench.request(), bench.why, now=clock.now())
    return {
        "url": memory_rows.memory_url(memory.public_id),
        "excerpt": memory_rows.clip(memory.content, 200),
        "step": answer.step,
        "words": STEPS.get(answer.step, answer.step),
        "detail": _(answer.sentence) % {name: _worded(name, value) for name, value in answer.values.items()},
        "rank": answer.rank,
        "good": answer.step == "returned",
        "bar": bar_of(answer.parts, bench.weights, PARTS) if answer.parts else None,
    }


def _worded(name: str, value: Any) -> Any:
    """Return a value of such a sentence as people read it."""
    if isinstance(value, datetime):
        return formats.when(value)
    if name == "states":
        return ", ".join(str(_worded("state", one)) for one in str(value).split(", "))
    return WHY_WORDS.get(name, {}).get(value, value)


@require_POST
@member("editor")
def save_weights(request: MemberRequest) -> HttpResponse:
    """Make the weights of the bench those of every recall that brings none."""
    defaults = recall.get_default_weights(request.principal.workspace)
    bench = Bench.read(request.POST, defaults)
    save_default_weights(writer=writer_of(request), weights=bench.weights)
    messages.success(request, _("These weights are the workspace's default now."))
    return redirect(bench.url(bench.weights))
