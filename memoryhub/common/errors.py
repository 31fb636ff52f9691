"""The kinds of errors that services raise and doors translate.

A room subclasses a kind beside the function that raises it and names it in the product's words:

    class UnknownSession(errors.NotFound):
        slug = "unknown-session"
        title = "Unknown session"

`status` is the number that HTTP doors answer with; no room reads it.
"""

from typing import Any


class HubError(Exception):
    """Something that the caller can understand and act on."""

    status = 500
    slug = "error"
    title = "Something went wrong"

    def __init__(self, detail: str = "", *, errors: list[dict[str, Any]] | None = None, **extra: Any) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.errors = errors or []
        self.extra = extra


class Malformed(HubError):
    """The input can't be parsed."""

    status = 400
    slug = "malformed"
    title = "Malformed request"


class Unauthenticated(HubError):
    """No credentials, or wrong ones."""

    status = 401
    slug = "unauthenticated"
    title = "Not signed in"


class Forbidden(HubError):
    """Known, but not allowed."""

    status = 403
    slug = "forbidden"
    title = "Not allowed"


class NotFound(HubError):
    """No such thing in this workspace."""

    status = 404
    slug = "not-found"
    title = "Not found"


class Conflict(HubError):
    """The state has moved on, or the name is taken."""

    status = 409
    slug = "conflict"
    title = "Conflict"


class PreconditionFailed(HubError):
    """The version that the caller saw is not the current one; `current` says which is."""

    status = 412
    slug = "precondition-failed"
    title = "Changed meanwhile"


class TooLarge(HubError):
    """Above a documented limit."""

    status = 413
    slug = "too-large"
    title = "Too large"


class Invalid(HubError):
    """Parsed, but it breaks a rule."""

    status = 422
    slug = "invalid"
    title = "Invalid input"


class PreconditionRequired(HubError):
    """This write needs `If-Match`."""

    status = 428
    slug = "precondition-required"
    title = "Precondition required"


class TooMany(HubError):
    """Too often; `retry_after_seconds` says when to come back."""

    status = 429
    slug = "too-many-requests"
    title = "Too many requests"

    def __init__(self, detail: str = "", *, retry_after_seconds: int = 1, **kwargs: Any) -> None:
        super().__init__(detail, **kwargs)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(HubError):
    """A part that this needs is down or full for the moment."""

    status = 503
    slug = "unavailable"
    title = "Not available right now"

    def __init__(self, detail: str = "", *, retry_after_seconds: int = 5, **kwargs: Any) -> None:
        super().__init__(detail, **kwargs)
        self.retry_after_seconds = retry_after_seconds


class OutOfSpace(HubError):
    """The disk is full; what was committed before is intact."""

    status = 507
    slug = "out-of-space"
    title = "The disk is full"
