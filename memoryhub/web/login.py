"""Sign in and out. Guessing is slowed down per name and per address, over all processes of the hub."""

import hashlib
import math
from typing import Any

from django.conf import settings
from django.contrib.auth import login as start_session
from django.contrib.auth import logout as end_session
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.web.forms import HubBoundField
from memoryhub.workspaces import tallies

ATTEMPTS_PER_NAME = 5
ATTEMPTS_PER_ADDRESS = 20
WINDOW_SECONDS = 300


class LoginForm(AuthenticationForm):
    """Name and password."""

    bound_field_class = HubBoundField

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"


def client_address(request: HttpRequest) -> str:
    """Return the caller's address; X-Forwarded-For counts only for as many hops as are configured to be ours."""
    hops = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    ours = settings.TRUSTED_PROXY_COUNT
    if ours and len(hops) >= ours:
        return hops[-ours]
    return str(request.META.get("REMOTE_ADDR", ""))


def next_path(request: HttpRequest, default: str = "/") -> str:
    """Return where to go afterwards: a path of this host, never an address of somebody else."""
    wanted = request.POST.get("next") or request.GET.get("next") or default
    allowed = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if allowed else default


def _tally_keys(request: HttpRequest) -> tuple[str, str]:
    """The counters of the name and of the address; neither stands in the database in clear."""
    name, address = request.POST.get("username", "").strip().lower(), client_address(request)
    return f"login-name:{_digest(name)}", f"login-address:{_digest(address)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _seconds_to_wait(request: HttpRequest) -> int | None:
    """Count this attempt, before the password is looked at; returns how long to wait where it is one too many."""
    name, address = _tally_keys(request)
    limits = ((name, ATTEMPTS_PER_NAME), (address, ATTEMPTS_PER_ADDRESS))
    counts = [(tallies.add(key, 1, window_seconds=WINDOW_SECONDS), limit) for key, limit in limits]
    waits = [count.seconds_left for count, limit in counts if count.total > limit]
    return max(1, math.ceil(max(waits))) if waits else None


def _take_back(request: HttpRequest) -> None:
    """A sign-in was no guess."""
    name, address = _tally_keys(request)
    tallies.clear(name)
    tallies.add(address, -1, window_seconds=WINDOW_SECONDS)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    """Show the form, or sign in and go on to where the person wanted to be."""
    if request.user.is_authenticated:
        return redirect(next_path(request))
    if request.method == "GET":
        return _show(request, LoginForm(request))
    wait = _seconds_to_wait(request)
    if wait is not None:
        return _show_throttled(request, wait)
    form = LoginForm(request, data=request.POST)
    if not form.is_valid():
        return _show(request, form, status=200)
    user = form.get_user()
    _take_back(request)
    start_session(request, user)
    return redirect(next_path(request))


def _show(request: HttpRequest, form: LoginForm, *, status: int = 200, note: str = "") -> HttpResponse:
    context = {"form": form, "next": next_path(request, ""), "note": note}
    return render(request, "registration/login.html", context, status=status)


def _show_throttled(request: HttpRequest, wait: int) -> HttpResponse:
    minutes = math.ceil(wait / 60)
    note = ngettext(
        "Too many attempts. Wait %(n)s minute, then try again.",
        "Too many attempts. Wait %(n)s minutes, then try again.",
        minutes,
    )
    response = _show(request, LoginForm(request), status=429, note=note % {"n": minutes})
    response["Retry-After"] = str(wait)
    return response


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    """End the session."""
    end_session(request)
    return redirect(f"{reverse('login')}")
