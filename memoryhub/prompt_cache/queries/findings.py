"""What the doctor found over time: single misses, advice, and agreement with the provider."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q, Sum

from memoryhub.prompt_cache.domain.doctor import PROVIDER_WORDS, SILENT_REASONS, UNNAMED_BY_PROVIDER
from memoryhub.prompt_cache.models import Diagnosis
from memoryhub.prompt_cache.models.requests import DiagnosisQuerySet
from memoryhub.prompt_cache.queries.miss_causes import CauseSum, sum_misses_by_cause
from memoryhub.prompt_cache.queries.sums import Span
from memoryhub.workspaces.models import Workspace

NO_CHANGE = "no_change"  # neither side, or one of them, saw a difference
NO_BODIES = "no_bodies"  # we had no two requests to compare, so we said nothing of a difference
MOST_GROUPS = 5_000
LOOKED_AT = 10_000  # misses that advice is made of: the newest of a range
_POSITION = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class AdviceCard:
    """Misses that one change would have spared."""

    cause: str
    detail: str
    kind: str
    path: str  # positions within messages left out: they move with every turn
    fix: str
    misses: int
    tokens: int
    pico: int
    sessions: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """How many requests were looked at in a range, and how that went."""

    requests: int
    hits: int
    misses: int
    missed_tokens: int
    missed_pico: int
    compared: int  # requests about which the provider said something, and which we could compare
    agreed: int


def list_misses(
    workspace: Workspace, start: datetime, end: datetime, *, cause: str = "", session: str = ""
) -> DiagnosisQuerySet:
    """Reported misses; order and cut them where they are shown."""
    found = Diagnosis.objects.of(workspace).between(start, end).reported()
    if cause:
        found = found.filter(cause=cause)
    return found.filter(session=session) if session else found


def load_misses(record_ids: Sequence[int]) -> dict[int, Diagnosis]:
    """Return whole misses with their records, by the record's id."""
    return Diagnosis.objects.select_related("record").in_bulk(record_ids)


@dataclass(frozen=True, slots=True)
class Overview:
    """A range at a glance. `matrix` counts by (our word, the provider's) the requests about which it said something;
    those that we could not compare stand in a row of their own, NO_BODIES.
    """

    figures: Diagnosed
    causes: list[CauseSum]
    matrix: dict[tuple[str, str], int]


def look_over(workspace: Workspace, span: Span) -> Overview:
    """The figures of a range: each request is read three times, from indexes alone."""
    within = Diagnosis.objects.of(workspace).between(span.start, span.end)
    asked = within.aggregate(requests=Count("*"), hits=Count("verdict", filter=Q(verdict="hit")))
    causes = sum_misses_by_cause(workspace, span)
    said = (
        within.filter(Q(provider_saw_no_change=True) | ~Q(provider_reason=""))
        .values_list("cause", "provider_reason", "agrees")
        .annotate(requests=Count("*"))
    )
    matrix: dict[tuple[str, str], int] = defaultdict(int)
    agreement: dict[bool | None, int] = defaultdict(int)
    for cause, reason, agrees, requests in said:
        matrix[our_word(cause, reason, agrees), reason or NO_CHANGE] += requests
        agreement[agrees] += requests
    figures = Diagnosed(
        **asked,
        misses=sum(cause.count for cause in causes),
        missed_tokens=sum(cause.missed_tokens for cause in causes),
        missed_pico=sum(cause.missed_pico for cause in causes),
        compared=agreement[True] + agreement[False],
        agreed=agreement[True],
    )
    return Overview(figures, causes, dict(matrix))


def advised_since(workspace: Workspace, start: datetime, end: datetime) -> datetime:
    """From when on advice looks at misses: from the start, or at the newest LOOKED_AT of the range where there are more."""
    newest = list_misses(workspace, start, end).order_by("-occurred_at").values_list("occurred_at", flat=True)
    oldest: datetime | None = newest[LOOKED_AT - 1 : LOOKED_AT].first()
    return oldest or start


def list_advice(workspace: Workspace, start: datetime, end: datetime, *, limit: int = 6) -> list[AdviceCard]:
    """What would save the most: misses with the same cause at the same place, joined into one card.

    It reads each of them; `advised_since` gives a start that keeps them few enough for a page.
    """
    rows = (
        list_misses(workspace, start, end)
        .values_list("cause", "detail", "kind", "path", "fix")
        .annotate(
            misses=Count("*"),
            tokens=Sum("missed_tokens"),
            pico=Sum("missed_pico"),
            sessions=Count("session", distinct=True),
            last_at=Max("occurred_at"),
        )
        .order_by("-tokens")[:MOST_GROUPS]
    )
    joined: dict[tuple[str, ...], list[AdviceCard]] = defaultdict(list)
    for cause, detail, kind, path, fix, misses, tokens, pico, sessions, last_at in rows:
        place = movable_path(path)
        card = AdviceCard(cause, detail, kind, place, fix, misses, tokens or 0, pico or 0, sessions, last_at)
        joined[cause, detail, kind, place, fix].append(card)
    cards = [_joined(same) for same in joined.values()]
    return sorted(cards, key=lambda card: (-card.pico, -card.tokens, card.cause, card.path))[:limit]


def movable_path(path: str) -> str:
    """Return the path without positions in messages: turns move on, tools and system blocks stay where they are."""
    return _POSITION.sub("[…]", path) if path.startswith("messages") else path


def _joined(cards: Iterable[AdviceCard]) -> AdviceCard:
    cards = list(cards)
    first = cards[0]
    return AdviceCard(
        first.cause,
        first.detail,
        first.kind,
        first.path,
        first.fix,
        sum(card.misses for card in cards),
        sum(card.tokens for card in cards),
        sum(card.pico for card in cards),
        max(card.sessions for card in cards),
        max(card.last_at for card in cards),
    )


def our_word(cause: str, provider_reason: str, agrees: bool | None) -> str:
    """Return our cause in the provider's words; where it has several, the one it used itself."""
    words = PROVIDER_WORDS.get(cause)
    if words is None:
        if provider_reason in SILENT_REASONS:
            return provider_reason
        return NO_BODIES if agrees is None and cause not in UNNAMED_BY_PROVIDER else NO_CHANGE
    return provider_reason if provider_reason in words else min(words)
