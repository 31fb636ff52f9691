"""How much of a long work goes into one transaction, so that other writers never wait long, on fast machines and slow ones."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SMOOTH = 0.5  # a step may not grow or shrink by more than this factor, or its inverse: one slow disk write is no trend


@dataclass
class Pace:
    """A number of rows that follows the time which they take: aims at `seconds` for one step."""

    size: int
    seconds: float = 0.06
    smallest: int = 100
    largest: int = 10_000

    @contextmanager
    def step(self) -> Iterator[None]:
        """Time one step of `size` rows; the next one's size follows."""
        start = time.monotonic()
        yield
        self.follow(time.monotonic() - start)

    def follow(self, taken: float) -> None:
        """Take note of what a step of `size` rows took, in seconds."""
        factor = self.seconds / taken if taken > 0 else 1 / SMOOTH
        wanted = self.size * max(SMOOTH, min(1 / SMOOTH, factor))
        self.size = max(self.smallest, min(self.largest, int(wanted)))
