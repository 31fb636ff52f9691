"""Public ids: a short prefix that names the thing, then 26 characters that sort by time of creation."""

import os
import threading

from memoryhub.common import clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32 in lower case: no i, l, o, u
_RANDOM_BITS = 80
_RANDOM_BYTES = _RANDOM_BITS // 8
_DRAWN_AT_ONCE = 100 * _RANDOM_BYTES  # asking the system for every id would cost more than making it
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]  # ten bits at a time


class _Drawn(threading.local):
    """Random bytes of this thread that no id has used yet."""

    bytes = b""


_drawn = _Drawn()


def _forget_drawn() -> None:
    _drawn.bytes = b""


os.register_at_fork(after_in_child=_forget_drawn)  # a child must not make its parent's ids


def _random_bits() -> int:
    rest = _drawn.bytes or os.urandom(_DRAWN_AT_ONCE)
    _drawn.bytes = rest[_RANDOM_BYTES:]
    return int.from_bytes(rest[:_RANDOM_BYTES])


def new_id(prefix: str) -> str:
    """Return e.g. `mem_01k9...`: 48 bits of milliseconds and 80 random bits, so new ids land at the end of an index."""
    value = int(clock.now().timestamp() * 1000) << _RANDOM_BITS | _random_bits()
    pairs = [_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)]
    return f"{prefix}_{''.join(pairs)}"
