"""One response is seen many times: by the API, the proxy, several transcript lines, files that copy older files.

A `Sighting` is one of those views of one billed part of a response. `Joined` holds what is known so far, at most one block
per class of source: *declared* (somebody told the hub about the response) and *transcript* (found in a file). Joining is
associative, commutative and idempotent, so sightings may come in any order and any number of times.

1. counters: the field-wise maximum, since early lines of a stream carry placeholders
2. of two transcript lines, a main-chain line replaces a side-chain line wholly: side chains replay their parent's id
3. who and where (session, project, agent): of transcripts, the earliest file, then its path; what was declared wins over that
4. when: what was declared, else the earliest line
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from memoryhub.prompt_cache.domain.usage import Stated

TRANSCRIPT = "transcript"
# Which word wins where two sources state a modifier differently: the more specific one, listed from weak to strong.
_TIERS = ("", "standard", "priority", "batch")
_SPEEDS = ("", "standard", "fast")
_GEOS = ("", "global", "us")


@dataclass(frozen=True, slots=True)
class Place:
    """Who used the tokens and where: the dimensions of the report. "" is "not said"."""

    session: str = ""
    project: str = ""
    agent: str = ""
    user: str = ""
    chain: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One source's view of one billed part of a response."""

    key: str
    part: int
    kind: str
    source: str
    model: str
    stated: Stated
    occurred_at: datetime
    region: str = ""
    convention: str = "anthropic"
    service_tier: str = ""
    speed: str = ""
    inference_geo: str = ""
    request_id: str = ""
    place: Place = field(default_factory=Place)
    started_at: datetime | None = None
    first_byte_at: datetime | None = None
    ended_at: datetime | None = None
    diagnostics: Any = None
    sidechain: bool = False
    # Which transcript is credited: the smaller text wins. Empty for what was declared.
    credit: str = ""
    cut: bool = False  # the stream ended early, so later counters may be missing

    @property
    def is_transcript(self) -> bool:
        return self.source == TRANSCRIPT


@dataclass(frozen=True, slots=True)
class Joined:
    """All that is known about one part of a response."""

    declared: Sighting | None = None
    transcript: Sighting | None = None

    @classmethod
    def of(cls, sighting: Sighting) -> Joined:
        return cls(transcript=sighting) if sighting.is_transcript else cls(declared=sighting)

    def joined(self, other: Joined) -> Joined:
        return Joined(_join_optional(self.declared, other.declared), _join_optional(self.transcript, other.transcript))

    def resolved(self) -> Sighting:
        """The one view that the ledger shows: what was declared, completed by what the transcript adds."""
        if self.declared is None:
            assert self.transcript is not None
            return self.transcript
        if self.transcript is None:
            return self.declared
        told, found = self.declared, self.transcript
        return replace(
            told,
            stated=told.stated.joined(found.stated),
            region=told.region or found.region,
            service_tier=_stronger(_TIERS, told.service_tier, found.service_tier),
            speed=_stronger(_SPEEDS, told.speed, found.speed),
            inference_geo=_stronger(_GEOS, told.inference_geo, found.inference_geo),
            request_id=told.request_id or found.request_id,
            occurred_at=told.occurred_at if told.started_at or told.ended_at else found.occurred_at,
            place=_completed(told.place, found.place),
            started_at=told.started_at or found.started_at,
            ended_at=told.ended_at or found.ended_at,
            diagnostics=told.diagnostics if told.diagnostics is not None else found.diagnostics,
            cut=False,
        )


def _join_optional(left: Sighting | None, right: Sighting | None) -> Sighting | None:
    if left is None or right is None:
        return left or right
    return join(left, right)


def join(left: Sighting, right: Sighting) -> Sighting:
    """What two sightings of the same class say together."""
    if left == right:
        return left
    if left.sidechain != right.sidechain:
        return right if left.sidechain else left
    first = min(left, right, key=_credit_order)
    place = first.place if first.is_transcript else _agreed(left.place, right.place)
    return Sighting(
        key=first.key,
        part=first.part,
        kind=min(left.kind, right.kind),
        source=min(left.source, right.source),
        model=first.model if first.is_transcript else min(left.model, right.model),
        stated=left.stated.joined(right.stated),
        occurred_at=min(left.occurred_at, right.occurred_at),
        region=max(left.region, right.region),
        convention=max(left.convention, right.convention),
        service_tier=_stronger(_TIERS, left.service_tier, right.service_tier),
        speed=_stronger(_SPEEDS, left.speed, right.speed),
        inference_geo=_stronger(_GEOS, left.inference_geo, right.inference_geo),
        request_id=_smaller_said(left.request_id, right.request_id),
        place=place,
        started_at=_earlier(left.started_at, right.started_at),
        first_byte_at=_earlier(left.first_byte_at, right.first_byte_at),
        ended_at=_later(left.ended_at, right.ended_at),
        diagnostics=_fuller(left.diagnostics, right.diagnostics),
        sidechain=left.sidechain,
        credit=first.credit,
        cut=left.cut and right.cut,
    )


def _credit_order(sighting: Sighting) -> tuple[Any, ...]:
    return sighting.credit, _place_order(sighting.place), sighting.model


def _place_order(place: Place) -> tuple[str, ...]:
    return place.session, place.project, place.agent, place.user, place.chain


def _completed(first: Place, second: Place) -> Place:
    """What the first says, and what only the second says."""
    return Place(*(getattr(first, name) or getattr(second, name) for name in PLACE_FIELDS))


def _agreed(left: Place, right: Place) -> Place:
    """Two declared places: per field what is said; where both differ the smaller text, so that order does not matter."""
    return Place(*(_smaller_said(getattr(left, name), getattr(right, name)) for name in PLACE_FIELDS))


PLACE_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(Place))


def _stronger(order: tuple[str, ...], left: str, right: str) -> str:
    return max(left, right, key=lambda word: (order.index(word) if word in order else len(order), word))


def _smaller_said(left: str, right: str) -> str:
    return min(left, right) if left and right else left or right


def _earlier(left: datetime | None, right: datetime | None) -> datetime | None:
    return min(left, right) if left and right else left or right


def _later(left: datetime | None, right: datetime | None) -> datetime | None:
    return max(left, right) if left and right else left or right


def _fuller(left: Any, right: Any) -> Any:
    """Diagnostics come late: a reason beats "still running", which beats nothing."""
    return max(left, right, key=_fullness)


def _fullness(diagnostics: Any) -> tuple[int, int, str]:
    if not isinstance(diagnostics, Mapping):
        return 0, 0, ""
    text = json.dumps(diagnostics, sort_keys=True)
    return 1 if diagnostics.get("cache_miss_reason") is None else 2, len(text), text


def to_json(sighting: Sighting) -> dict[str, Any]:
    """The block as the ledger keeps it where both classes of source saw one response."""
    data = asdict(sighting)
    for name in _TIMES:
        data[name] = data[name].isoformat() if data[name] else None
    return data


def from_json(data: Mapping[str, Any]) -> Sighting:
    values = dict(data)
    values["stated"] = Stated(**values["stated"])
    values["place"] = Place(**values["place"])
    for name in _TIMES:
        values[name] = datetime.fromisoformat(values[name]) if values[name] else None
    return Sighting(**values)


_TIMES = ("occurred_at", "started_at", "first_byte_at", "ended_at")
