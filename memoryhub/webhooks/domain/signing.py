"""Proving that a message is ours, as the Standard Webhooks specification (version 1) has it.

The signature is HMAC-SHA256 over `id.timestamp.body` with the webhook's secret, in base64 behind `v1,`. A receiver compares
it in constant time and refuses a timestamp that is more than some minutes old, so that a message can't be played again.
"""

import base64
import hashlib
import hmac

SECRET_PREFIX = "whsec_"  # noqa: S105 - the form of a secret, not one


def secret_of(public_id: str, generation: int, pepper: str) -> str:
    """Return a webhook's secret: made from the hub's pepper, so that the database holds none."""
    digest = hmac.new(pepper.encode(), f"webhook:{public_id}:{generation}".encode(), hashlib.sha256).digest()
    return SECRET_PREFIX + base64.b64encode(digest).decode()


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`; `timestamp` in whole seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
