"""What can go wrong when an agent talks to its hub, named after the hub's own kinds of problems."""

from typing import Any


class HubError(Exception):
    """The hub answered with a problem. `slug` is the last part of the problem's type, such as "unknown-memory"."""

    def __init__(self, status: int, problem: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.slug = str(problem.get("type") or "").rsplit("/", 1)[-1] or "error"
        self.title = str(problem.get("title") or "The hub answered with an error")
        self.detail = str(problem.get("detail") or self.title)
        self.errors: list[dict[str, Any]] = problem.get("errors") or []
        self.request_id = str(problem.get("request_id") or "")
        self.problem = problem
        self.headers = headers or {}
        super().__init__(f"{status} {self.detail}")

    @property
    def retry_after_seconds(self) -> float | None:
        """How long the hub asks to wait, where it does."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdigit() else None


class Malformed(HubError):
    """400: the request could not be parsed."""


class Unauthenticated(HubError):
    """401: no key, or a wrong one."""


class Forbidden(HubError):
    """403: the key may not do this."""


class NotFound(HubError):
    """404: no such thing in the key's workspace."""


class Conflict(HubError):
    """409: the name is taken, or the state has moved on."""


class PreconditionFailed(HubError):
    """412: somebody else changed it meanwhile; `problem["current"]` says to what."""


class TooLarge(HubError):
    """413: above a documented limit."""


class Invalid(HubError):
    """422: it breaks a rule; `errors` names the fields."""


class PreconditionRequired(HubError):
    """428: this write needs the version it is based on."""


class TooMany(HubError):
    """429: too often."""


class Unavailable(HubError):
    """503: the hub is up, but not able to do this now."""


class OutOfSpace(HubError):
    """507: the hub's disk is full."""


class HubUnreachable(Exception):
    """No answer: the hub is down, the address is wrong, or the time was up."""


_BY_STATUS: dict[int, type[HubError]] = {
    400: Malformed,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    422: Invalid,
    428: PreconditionRequired,
    429: TooMany,
    503: Unavailable,
    507: OutOfSpace,
}


def error_of(status: int, problem: dict[str, Any], headers: dict[str, str] | None = None) -> HubError:
    """The error that mirrors a problem."""
    return _BY_STATUS.get(status, HubError)(status, problem, headers)
