"""Public ids: a short prefix that names the thing, then 26 characters that sort by time of creation."""

import secrets

from memoryhub.common import clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32 in lower case: no i, l, o, u
_RANDOM_BITS = 80


def new_id(prefix: str) -> str:
    """Return e.g. `mem_01k9...`: 48 bits of milliseconds and 80 random bits, so new ids land at the end of an index."""
    value = int(clock.now().timestamp() * 1000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    digits = []
    for _ in range(26):
        value, digit = divmod(value, 32)
        digits.append(_ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(digits))}"
