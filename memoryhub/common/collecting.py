"""When Python looks for cyclic garbage: seldom, and never among what was there before the work began.

Its default, after every 700 new objects, suits short scripts. A hub makes very many objects and few circles: looking for
them as often takes a tenth of an import's time and is felt in the slowest requests.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (50_000, 20, 50)


def settle() -> None:
    """Call once a process is loaded, for all that it does from then on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def settled() -> Iterator[None]:
    """The same for one piece of work, as before afterwards."""
    before = gc.get_threshold()
    settle()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
