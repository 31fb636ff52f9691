"""How strong the memories of a list are, as bars without a script."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

HEIGHT = 60  # of the drawing; the page scales it
BAR, GAP = 12, 3


@dataclass(frozen=True, slots=True)
class Band:
    """Memories between two strengths."""

    label: str
    count: int
    x: str
    y: str
    height: str


@dataclass(frozen=True, slots=True)
class StrengthBars:
    """The bars, and the marks below which memories fade and are archived."""

    bands: list[Band]
    width: int
    fade_x: str
    archive_x: str
    summary: str


def draw_strengths(bins: Sequence[tuple[float, int]], *, fades: float, archives: float) -> StrengthBars:
    """Draw (lower edge, count) for each band."""
    top = max((count for _edge, count in bins), default=0) or 1
    step = 1 / max(1, len(bins))
    width = len(bins) * (BAR + GAP)
    bands = []
    for index, (edge, count) in enumerate(bins):
        height = max(1.5, count / top * (HEIGHT - 4)) if count else 0.0
        label = f"{edge:.2f} – {edge + step:.2f}"
        bands.append(Band(label, count, f"{index * (BAR + GAP)}", f"{HEIGHT - height:.1f}", f"{height:.1f}"))
    weak = sum(count for edge, count in bins if edge < fades)
    total = sum(count for _edge, count in bins)
    summary = _("%(weak)s of %(total)s memories are weaker than %(level)s.") % {
        "weak": weak,
        "total": total,
        "level": f"{fades:g}",
    }
    return StrengthBars(bands, width, f"{fades * width:.1f}", f"{archives * width:.1f}", summary)
