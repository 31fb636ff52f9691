"""A score as a stacked bar: each part as wide as what it adds, in its own colour and pattern."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoryhub.long_term_memory.domain.ranking import Weights

WIDTH = 200  # of the drawing; the page scales it
GAP = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a bar, with the numbers behind it."""

    name: str
    label: Any
    x: str
    width: str
    value: float
    weight: float
    adds: float


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """The bar and what it says to those who don't see it."""

    segments: list[Segment]
    summary: str
    total: float


def bar_of(parts: Mapping[str, float], weights: Weights, labels: Mapping[str, Any]) -> ScoreBar:
    """Return the bar of a score, the weighted mean of its parts; the whole width stands for 1."""
    shares = weights.as_dict()
    segments, at = [], 0.0
    for name, label in labels.items():
        adds = parts.get(name, 0.0) * shares[name] / weights.total
        drawn = max(0.0, adds * WIDTH - (GAP if at else 0))
        start = at * WIDTH + (GAP if at else 0)
        segments.append(Segment(name, label, f"{start:.2f}", f"{drawn:.2f}", parts.get(name, 0.0), shares[name], adds))
        at += adds
    return ScoreBar(segments, ", ".join(f"{segment.label} {segment.adds:.2f}" for segment in segments), at)


def legend(labels: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return (part, label) in the order in which the bar stacks them."""
    return list(labels.items())
