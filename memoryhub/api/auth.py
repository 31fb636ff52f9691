"""Who stands at the API's door: a key (Bearer) first, then a signed-in person's session cookie."""

from django.http import HttpRequest
from ninja.security.base import AuthBase
from ninja.utils import check_csrf

from memoryhub.common import errors
from memoryhub.workspaces import key_cache
from memoryhub.workspaces.principals import MissingScope, Principal
from memoryhub.workspaces.queries import find_principal_of_user


class BadKey(errors.Unauthenticated):
    slug = "bad-key"
    title = "This key is not valid"


class CsrfFailed(errors.Forbidden):
    slug = "csrf"
    title = "The page's token is missing or old"


class ApiRequest(HttpRequest):
    """A request that passed the door."""

    principal: Principal
    request_id: str


def identify(request: HttpRequest) -> Principal | None:
    """Return whoever sent the request, None for nobody; raises BadKey for a credential that is not valid."""
    known: Principal | None = getattr(request, "principal", None)
    if known is not None:
        return known
    header = request.headers.get("Authorization", "")
    if header:
        scheme, _, token = header.partition(" ")
        principal = key_cache.authenticate(token.strip()) if scheme.lower() == "bearer" else None
        if principal is None:
            raise BadKey("Send a valid key as `Authorization: Bearer mh_...`.")
        return principal
    user = getattr(request, "user", None)  # only a request with a session cookie has one
    if user is not None and user.is_authenticated:
        if check_csrf(request):
            raise CsrfFailed("Send the page's CSRF token in X-CSRFToken.")
        return find_principal_of_user(user, request.session.get("workspace_id"))
    return None


class HubAuth(AuthBase):
    """Lets a request pass that holds one scope (or the other one, where there is one), or with None every known caller."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = "A key of this hub, `mh_...`."

    def __init__(self, scope: str | None, other: str | None = None) -> None:
        super().__init__()
        self.scope = scope
        self.other = other

    def __call__(self, request: HttpRequest) -> Principal:
        principal = identify(request)
        if principal is None:
            raise errors.Unauthenticated("Send a key as `Authorization: Bearer mh_...`.")
        if self.scope and not principal.allows(self.scope) and not (self.other and principal.allows(self.other)):
            raise MissingScope(f"This needs the scope {self.scope}.")
        request.principal = principal  # type: ignore[attr-defined]
        return principal


def requires(scope: str | None, *, other: str | None = None) -> HubAuth:
    """Return the `auth=` of an operation that needs this scope; None is for what every known caller may do.

    `other` opens the door for a second scope as well; which of the two it takes is then decided behind the door.
    """
    return HubAuth(scope, other)
