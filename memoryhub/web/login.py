"""Sign in and out. Guessing is slowed down per name and per address."""

import hashlib
from typing import Any

from django.conf import settings
from django.contrib.auth import login as start_session
from django.contrib.auth import logout as end_session
from django.contrib.auth.forms import AuthenticationForm
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.web.forms import HubBoundField

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


def _counter_keys(request: HttpRequest) -> list[tuple[str, int]]:
    name = request.POST.get("username", "").strip().lower()
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
    return [
        (f"login-name:{digest}", ATTEMPTS_PER_NAME),
        (f"login-address:{client_address(request)}", ATTEMPTS_PER_ADDRESS),
    ]


def _is_throttled(request: HttpRequest) -> bool:
    return any(cache.get(key, 0) >= limit for key, limit in _counter_keys(request))


def _note_failure(request: HttpRequest) -> None:
    for key, _limit in _counter_keys(request):
        if not cache.add(key, 1, WINDOW_SECONDS):
            try:
                cache.incr(key)
            except ValueError:  # it expired in between
                cache.set(key, 1, WINDOW_SECONDS)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def login(request: HttpRequest) -> HttpResponse:
    """Show the form, or sign in and go on to where the person wanted to be."""
    if request.user.is_authenticated:
        return redirect(next_path(request))
    if request.method == "GET":
        return _show(request, LoginForm(request))
    if _is_throttled(request):
        return _show_throttled(request)
    form = LoginForm(request, data=request.POST)
    if not form.is_valid():
        _note_failure(request)
        return _show(request, form, status=200)
    user = form.get_user()
    cache.delete(_counter_keys(request)[0][0])
    start_session(request, user)
    return redirect(next_path(request))


def _show(request: HttpRequest, form: LoginForm, *, status: int = 200, note: str = "") -> HttpResponse:
    context = {"form": form, "next": next_path(request, ""), "note": note}
    return render(request, "registration/login.html", context, status=status)


def _show_throttled(request: HttpRequest) -> HttpResponse:
    minutes = WINDOW_SECONDS // 60
    note = ngettext(
        "Too many attempts. Wait %(n)s minute, then try again.",
        "Too many attempts. Wait %(n)s minutes, then try again.",
        minutes,
    )
    response = _show(request, LoginForm(request), status=429, note=note % {"n": minutes})
    response["Retry-After"] = str(WINDOW_SECONDS)
    return response


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    """End the session."""
    end_session(request)
    return redirect(f"{reverse('login')}")
