"""Webhooks: addresses that hear of changes, what each was told, and its secret, shown once."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub.common import errors
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.workspace import WebhookForm
from memoryhub.web.htmx import wants_part
from memoryhub.web.paging import page_of
from memoryhub.web.settings import settings_tabs
from memoryhub.web.webhook_words import EVENT_LABELS, PROBLEM_WORDS
from memoryhub.webhooks import queries, services
from memoryhub.webhooks.models import DeliveryState, Webhook, WebhookDelivery
from memoryhub.webhooks.queries import MOST_WEBHOOKS

REFRESH_SECONDS = 3
STATE_TONES = {DeliveryState.WAITING: "", DeliveryState.DELIVERED: "good", DeliveryState.FAILED: "bad"}


class UnknownAction(errors.NotFound):
    slug = "unknown-action"
    title = "A webhook has no such action"


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook as its row and its page show it."""

    public_id: str
    page_url: str
    address: str
    note: str
    events: list[Any]
    state: str
    tone: str
    why_paused: Any
    active: bool
    created_at: Any
    created_by: str


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A message as its row shows it."""

    public_id: str
    event: Any
    event_name: str
    state: Any
    tone: str
    problem: Any
    detail: str
    attempts: int
    took: str
    created_at: Any
    change_url: str
    may_repeat: bool


def _row(webhook: Webhook) -> WebhookRow:
    if not webhook.active:
        state, tone = _("paused"), "warn"
    elif webhook.failures:
        state, tone = _("failing"), "bad"
    else:
        state, tone = _("active"), "good"
    return WebhookRow(
        webhook.public_id,
        reverse("webhook", args=[webhook.public_id]),
        webhook.url,
        webhook.note,
        [EVENT_LABELS[event] for event in webhook.events] or [_("everything")],
        state,
        tone,
        PROBLEM_WORDS.get(webhook.paused_because, ""),
        webhook.active,
        webhook.created_at,
        webhook.created_by,
    )


def _delivery_row(delivery: WebhookDelivery) -> DeliveryRow:
    change_set = delivery.change_set
    detail = " ".join(str(part) for part in (delivery.status_code, delivery.detail) if part and delivery.problem)
    return DeliveryRow(
        delivery.public_id,
        EVENT_LABELS.get(delivery.event, delivery.event),
        delivery.event,
        DeliveryState(delivery.state).label,
        STATE_TONES[DeliveryState(delivery.state)],
        PROBLEM_WORDS.get(delivery.problem, ""),
        detail,
        delivery.attempts,
        formats.duration(delivery.took_ms / 1000) if delivery.took_ms is not None else "",
        delivery.created_at,
        reverse("change", args=[change_set.public_id]) if change_set else "",
        delivery.state == DeliveryState.FAILED,
    )


@require_GET
@member("admin")
def webhooks(request: MemberRequest) -> HttpResponse:
    """List the webhooks."""
    return _show_list(request, WebhookForm())


@never_cache
@require_POST
@member("admin")
def create_webhook(request: MemberRequest) -> HttpResponse:
    """Make a webhook and show its secret, this once."""
    form = WebhookForm(data=request.POST)
    if not form.is_valid():
        return _show_list(request, form, status=422)
    principal = request.principal
    try:
        made, secret = services.create_webhook(
            workspace=principal.workspace, actor=principal.actor, **form.cleaned_data
        )
    except services.InvalidWebhook:
        form.add_error(None, _("A workspace has at most %(n)s webhooks.") % {"n": MOST_WEBHOOKS})
        return _show_list(request, form, status=422)
    return _show(request, made, secret=secret)


def _show_list(request: MemberRequest, form: WebhookForm, status: int = 200) -> HttpResponse:
    context = {
        "tabs": settings_tabs("settings_webhooks", request.principal.role),
        "rows": [_row(webhook) for webhook in queries.list_webhooks(request.principal.workspace)],
        "form": form,
    }
    return render(request, "webhooks/webhooks.html", context, status=status)


@require_http_methods(["GET", "POST"])
@member("admin")
def webhook(request: MemberRequest, public_id: str) -> HttpResponse:
    """One webhook with what it was told; POST changes where it is and what it hears."""
    found = queries.get_webhook(request.principal.workspace, public_id)
    if request.method == "GET":
        return _show(request, found)
    form = WebhookForm(data=request.POST)
    if not form.is_valid():
        return _show(request, found, form=form, status=422)
    services.change_webhook(webhook=found, actor=request.principal.actor, **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("webhook", public_id=public_id)


def _show(
    request: MemberRequest, found: Webhook, *, form: WebhookForm | None = None, secret: str = "", status: int = 200
) -> HttpResponse:
    here = reverse("webhook", args=[found.public_id])
    page = page_of(request, queries.list_deliveries(found), order=queries.NEWEST_FIRST, path=here)
    waits = any(delivery.state == DeliveryState.WAITING for delivery in page.items)
    context = {
        "webhook": _row(found),
        "form": form or WebhookForm(initial={"url": found.url, "note": found.note, "events": found.events}),
        "rows": [_delivery_row(delivery) for delivery in page.items],
        "refresh_seconds": REFRESH_SECONDS if found.active and waits else 0,
        "refresh_url": request.get_full_path() if request.method == "GET" else here,
        "page": page,
        "secret": secret,
        "here": here,
        "proof": PROOF,
    }
    part = "webhooks/webhook.html#messages" if wants_part(request) else "webhooks/webhook.html"
    return render(request, part, context, status=status)


@never_cache
@require_POST
@member("admin")
def change_webhook_state(request: MemberRequest, public_id: str, do: str) -> HttpResponse:
    """Test, pause or resume it, give it a new secret, or tell a message again."""
    found = queries.get_webhook(request.principal.workspace, public_id)
    actor = request.principal.actor
    if do == "secret":
        return _show(request, found, secret=services.renew_secret(webhook=found, actor=actor))
    if do == "pause":
        services.pause_webhook(webhook=found, actor=actor)
        messages.success(request, _("It is paused. What it would hear from now on is not kept for it."))
    elif do == "resume":
        services.resume_webhook(webhook=found, actor=actor)
        messages.success(request, _("It hears of changes again."))
    elif do == "again":
        services.tell_again(webhook=found, public_id=request.POST.get("message", "")[:40])
        messages.info(request, _("The message is sent again."))
    elif do == "test":
        _leave_test(request, found)
    else:
        raise UnknownAction(_("This address could not be read."))
    return redirect("webhook", public_id=public_id)


def _leave_test(request: MemberRequest, found: Webhook) -> None:
    try:
        services.leave_test(webhook=found)
    except services.InvalidWebhook:
        messages.warning(request, _("It is paused; resume it first."))
        return
    messages.info(request, _("A test message is on its way; this page shows how it was taken."))


@require_http_methods(["GET", "POST"])
@member("admin")
def remove_webhook(request: MemberRequest, public_id: str) -> HttpResponse:
    """Ask, then remove."""
    found = queries.get_webhook(request.principal.workspace, public_id)
    if request.method == "GET":
        context = {
            "question": _("Remove this webhook?"),
            "consequence": _("%(url)s hears nothing more, and the list of what it was told goes too.")
            % {"url": found.url},
            "confirm_label": _("Remove the webhook"),
            "back_url": reverse("webhook", args=[public_id]),
        }
        return render(request, "confirm.html", context)
    services.remove_webhook(webhook=found, actor=request.principal.actor)
    messages.success(request, _("The webhook is removed."))
    return redirect("settings_webhooks")


# What a receiver runs; tests run it too.
PROOF = """import base64, hashlib, hmac
from time import time

def is_from_memoryhub(secret: str, headers: dict[str, str], body: bytes) -> bool:
    if abs(time() - int(headers["webhook-timestamp"])) > 300:
        return False
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(expected, headers["webhook-signature"])"""
