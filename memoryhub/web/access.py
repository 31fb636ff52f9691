"""Who looks at a page: their role in the workspace, their language, theme and time zone.

`@member("viewer" | "editor" | "admin")` opens a page to members of at least that role and sets `request.principal`; everybody
else gets the login page, or a page that says who may do this. Errors that services raise become a page (or a line for htmx).
"""

import logging
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal
from urllib.parse import unquote

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone, translation
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from memoryhub.common import errors
from memoryhub.doors import PROGRAM_PATHS
from memoryhub.workspaces.models import User
from memoryhub.workspaces.principals import ROLES, Principal
from memoryhub.workspaces.queries import find_principal_of_user
from memoryhub.workspaces.services import UnknownTimeZone, check_time_zone

logger = logging.getLogger(__name__)

Role = Literal["viewer", "editor", "admin"]
View = Callable[..., HttpResponseBase]

WORKSPACE_SESSION_KEY = "workspace_id"
THEME_COOKIE = "memoryhub_theme"
ZONE_COOKIE = "memoryhub_zone"  # chosen by the viewer
BROWSER_ZONE_COOKIE = "memoryhub_browser_zone"  # told by the browser; a choice comes first
THEMES = {
    "system": pgettext_lazy("appearance", "System"),
    "light": pgettext_lazy("appearance", "Light"),
    "dark": pgettext_lazy("appearance", "Dark"),
}


class MemberRequest(HttpRequest):
    """A request that `@member` let in."""

    principal: Principal
    viewer: "Viewer"
    user: User
    htmx: HtmxDetails


@dataclass(frozen=True, slots=True)
class Viewer:
    """How this person wants to see pages."""

    language: str
    theme: str
    zone: str

    @property
    def language_name(self) -> str:
        return dict(settings.LANGUAGES).get(self.language, self.language)

    @property
    def themes(self) -> list[tuple[str, Any]]:
        return list(THEMES.items())


def known_zone(name: str) -> str | None:
    """Return the name when the tz database has it, else None."""
    if not name or len(name) > 64:
        return None
    try:
        check_time_zone(name)
    except UnknownTimeZone:
        return None
    return name


def _signed_in_user(request: HttpRequest) -> User | None:
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    user = getattr(request, "user", None)
    return user if isinstance(user, User) or (user is not None and user.is_authenticated) else None


def read_viewer(request: HttpRequest) -> Viewer:
    """Return the viewer's wishes: their profile first, then this browser's cookies, then the browser itself."""
    user = _signed_in_user(request)
    languages = dict(settings.LANGUAGES)
    language = user.language if user and user.language in languages else (translation.get_language() or "en")
    theme = (user.theme if user else "") or request.COOKIES.get(THEME_COOKIE, "")
    chosen = (user.time_zone if user else "") or unquote(request.COOKIES.get(ZONE_COOKIE, ""))
    told = unquote(request.COOKIES.get(BROWSER_ZONE_COOKIE, ""))
    return Viewer(
        language=language if language in languages else "en",
        theme=theme if theme in THEMES else "system",
        zone=known_zone(chosen) or known_zone(told) or "UTC",
    )


class ViewerMiddleware:
    """Speak the viewer's language and show times in their zone, on pages only."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(PROGRAM_PATHS):
            return self.get_response(request)
        viewer = read_viewer(request)
        request.viewer = viewer  # type: ignore[attr-defined]
        translation.activate(viewer.language)
        request.LANGUAGE_CODE = viewer.language
        try:
            with timezone.override(zoneinfo.ZoneInfo(viewer.zone)):
                return self.get_response(request)
        finally:
            translation.deactivate()


def principal_of(request: HttpRequest) -> Principal | None:
    """Return the signed-in person in the workspace that they last chose, or None where they belong to none."""
    user = request.user
    if not user.is_authenticated:
        return None
    return find_principal_of_user(user, request.session.get(WORKSPACE_SESSION_KEY))


def member(role: Role) -> Callable[[View], View]:
    """Open a page to members of at least this role, in the workspace that they chose."""
    if role not in ROLES:
        raise ValueError(f"{role} is not a role")

    def decorate(view: View) -> View:
        @wraps(view)
        def opened(request: MemberRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _ask_to_sign_in(request)
            principal = principal_of(request)
            if principal is None:
                return error_page(request, 403, _("No workspace yet"), _("Ask an admin to add you to a workspace."))
            request.principal = principal
            if ROLES.index(principal.role) < ROLES.index(role):
                return error_page(request, 403, _("Not allowed"), _ROLE_NEEDED[role])
            try:
                response = view(request, *args, **kwargs)
            except errors.HubError as error:
                return error_page(request, error.status, error.title, error.detail)
            except IntegrityError:
                logger.warning("two writes met at %s", request.path, exc_info=True)
                detail = _("Somebody else wrote the same at the same moment. Reload the page and try again.")
                return error_page(request, 409, _("Conflict"), detail)
            patch_cache_control(response, private=True, no_cache=True)
            return response

        opened.needs_role = role  # type: ignore[attr-defined]
        return opened

    return decorate


_ROLE_NEEDED = {
    "viewer": gettext_lazy("Only members of this workspace may see this."),
    "editor": gettext_lazy("Editors and admins of this workspace may do this. Ask an admin to change your role."),
    "admin": gettext_lazy("Only admins of this workspace may do this."),
}


def _ask_to_sign_in(request: MemberRequest) -> HttpResponse:
    if request.htmx:
        return HttpResponseClientRedirect(
            f"{settings.LOGIN_URL and _login_path()}?next={request.htmx.current_url_abs_path or '/'}"
        )
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/", _login_path())


def _login_path() -> str:
    return redirect(settings.LOGIN_URL)["Location"]


def error_page(request: HttpRequest, status: int, title: str, detail: Any) -> HttpResponse:
    """Say what went wrong, with the request's id; a line for htmx, a page for the rest."""
    context = {
        "error_title": title,
        "detail": detail,
        "status": status,
        "request_id": getattr(request, "request_id", ""),
    }
    part = getattr(request, "htmx", None) and not request.htmx.history_restore_request  # type: ignore[attr-defined]
    return render(request, "partials/_error.html" if part else "error.html", context, status=status)
