"""The form of an API key and how it is proven. Pure but for the pepper, which is passed in."""

import hashlib
import hmac
import re
import secrets

LOOKUP_LENGTH = 8
_FORM = re.compile(r"mh_([a-z0-9]{8})_([A-Za-z0-9_-]{43})")
_LOOKUP_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def make_token() -> tuple[str, str]:
    """Return (lookup, whole token): `mh_<8 lookup>_<43 random>`, 256 bits of randomness in the second part."""
    lookup = "".join(secrets.choice(_LOOKUP_ALPHABET) for _ in range(LOOKUP_LENGTH))
    return lookup, f"mh_{lookup}_{secrets.token_urlsafe(32)}"


def lookup_of(token: str) -> str | None:
    """Return the lookup part of a well-formed token, else None."""
    match = _FORM.fullmatch(token)
    return match.group(1) if match else None


def digest_of(token: str, pepper: str) -> str:
    """Return the HMAC-SHA256 of a token as 64 hex characters."""
    return hmac.new(pepper.encode(), token.encode(), hashlib.sha256).hexdigest()


def proves(token: str, digest: str, pepper: str) -> bool:
    """Tell in constant time whether the token belongs to the digest."""
    return hmac.compare_digest(digest_of(token, pepper), digest)
