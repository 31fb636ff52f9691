"""A person's own things: language, appearance, time zone, password, and which workspace they look at."""

import zoneinfo
from functools import cache as kept_for_good
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm as DjangoPasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from memoryhub.web import access
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms import HubBoundField, HubForm
from memoryhub.web.login import next_path
from memoryhub.workspaces.models import User
from memoryhub.workspaces.queries import list_workspaces_of
from memoryhub.workspaces.services import enter_workspace

COOKIE_SECONDS = 365 * 24 * 3600


@kept_for_good
def zone_choices() -> list[tuple[str, str]]:
    """Return the tz database's names that people know (Area/City), UTC first."""
    areas = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
    names = sorted(name for name in zoneinfo.available_timezones() if name.startswith(areas))
    return [("UTC", "UTC"), *((name, name.replace("_", " ")) for name in names)]


class ZoneForm(HubForm):
    """The viewer's time zone; empty follows the browser."""

    zone = forms.ChoiceField(label=gettext_lazy("Time zone"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].choices = [("", _("As in this browser")), *zone_choices()]  # type: ignore[attr-defined]


class PasswordChangeForm(DjangoPasswordChangeForm):
    """Old password and the new one twice."""

    bound_field_class = HubBoundField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"
            field.widget.attrs.pop("autofocus", None)


@require_POST
def preferences(request: HttpRequest) -> HttpResponse:
    """Keep the language, appearance or zone that was sent, in the profile and in this browser, and go back to the page."""
    response = redirect(next_path(request))
    changed: dict[str, str] = {}
    language = request.POST.get("language", "")
    if language in dict(settings.LANGUAGES):
        changed["language"] = language
        _set_cookie(response, settings.LANGUAGE_COOKIE_NAME, language)
        translation.activate(language)
    theme = request.POST.get("theme", "")
    if theme in access.THEMES:
        changed["theme"] = theme
        _set_cookie(response, access.THEME_COOKIE, theme)
    zone = request.POST.get("zone")
    if zone is not None and (zone == "" or access.known_zone(zone)):
        changed["time_zone"] = zone
        _set_cookie(response, access.ZONE_COOKIE, zone)
    if changed and isinstance(request.user, User):
        for name, value in changed.items():
            setattr(request.user, name, value)
        request.user.save(update_fields=list(changed))
    return response


def _set_cookie(response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(
        name, value, max_age=COOKIE_SECONDS, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE, httponly=True
    )


@require_POST
@member("viewer")
def switch_workspace(request: MemberRequest) -> HttpResponse:
    """Look at another of one's workspaces, from its overview on."""
    wanted = request.POST.get("workspace", "")
    chosen = next((w for w in list_workspaces_of(request.user) if w.name == wanted), None)
    if chosen is None:
        return access.error_page(request, 404, _("Not found"), _("You are not a member of such a workspace."))
    enter_workspace(workspace=chosen, user=request.user)
    request.session[access.WORKSPACE_SESSION_KEY] = chosen.pk
    return redirect("overview")


@require_GET
@member("viewer")
def account(request: MemberRequest) -> HttpResponse:
    """Show the forms."""
    return _show(request, PasswordChangeForm(request.user))


@sensitive_post_parameters()
@require_POST
@member("viewer")
def change_password(request: MemberRequest) -> HttpResponse:
    """Change the password; other sessions of this person end, this one goes on."""
    form = PasswordChangeForm(request.user, data=request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    user = form.save()
    update_session_auth_hash(request, user)
    messages.success(request, _("Your password is changed. Other browsers have to sign in again."))
    return redirect("account")


def _show(request: MemberRequest, form: PasswordChangeForm, status: int = 200) -> HttpResponse:
    zone_form = ZoneForm(initial={"zone": request.user.time_zone})
    return render(request, "workspaces/account.html", {"form": form, "zone_form": zone_form}, status=status)
