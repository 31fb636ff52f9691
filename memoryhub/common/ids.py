"""Public ids: a short prefix that names the thing, then 26 characters that sort by time of creation."""

import secrets

from memoryhub.common import clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32 in lower case: no i, l, o, u
_RANDOM_BITS = 80
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]  # ten bits at a time


def new_id(prefix: str) -> str:
    """Return e.g. `mem_01k9...`: 48 bits of milliseconds and 80 random bits, so new ids land at the end of an index."""
    value = int(clock.now().timestamp() * 1000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    pairs = [_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)]
    return f"{prefix}_{''.join(pairs)}"
