"""A score as a stacked bar: each part as wide as what it adds, in its own colour and pattern."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoryhub.long_term_memory.domain.ranking import Weights

WIDTH = 200  # of the drawing; the page scales it
GAP = 1
LEAST_MOVED = 0.001  # below it is rounding


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
    factor: float = 1.0  # what people's ratings made of the mean
    adjusts: float = 0.0  # by how much that moved the score


def bar_of(
    parts: Mapping[str, float], weights: Weights, labels: Mapping[str, Any], *, score: float | None = None
) -> ScoreBar:
    """Return the bar of a score: the weighted mean of its parts, moved by people's ratings; the whole width stands for 1."""
    shares = weights.as_dict()
    mean = sum(parts.get(name, 0.0) * shares[name] for name in labels) / weights.total
    factor = score / mean if score is not None and mean > 0 else 1.0
    segments, at = [], 0.0
    for name, label in labels.items():
        adds = parts.get(name, 0.0) * shares[name] / weights.total
        drawn = max(0.0, adds * factor * WIDTH - (GAP if at else 0))
        start = at * factor * WIDTH + (GAP if at else 0)
        segments.append(Segment(name, label, f"{start:.2f}", f"{drawn:.2f}", parts.get(name, 0.0), shares[name], adds))
        at += adds
    summary = ", ".join(f"{segment.label} {segment.adds:.2f}" for segment in segments)
    moved = abs(factor - 1) > LEAST_MOVED
    return ScoreBar(segments, summary, factor if moved else 1.0, mean * (factor - 1) if moved else 0.0)


def legend(labels: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return (part, label) in the order in which the bar stacks them."""
    return list(labels.items())
