"""Making and changing webhooks, leaving messages for them, and noting how they were received."""

from collections.abc import Iterable
from datetime import timedelta
from urllib.parse import urlsplit

from django.db import transaction
from django.db.models import F

from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.audit.services import record_event
from memoryhub.common import clock, errors, ids
from memoryhub.webhooks.domain.events import EVENTS, TEST, event_of, is_wanted
from memoryhub.webhooks.models import DeliveryState, Webhook, WebhookDelivery
from memoryhub.webhooks.posting import Outcome
from memoryhub.webhooks.queries import MOST_WEBHOOKS, reveal_secret
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor

JOB_KIND = "deliver_webhooks"
MAX_ATTEMPTS = 8  # over about twenty minutes
PAUSED_AFTER = 50  # attempts in a row that failed
KEPT_DAYS = 30
MOST_TOLD_AGAIN = 500  # batches, when a webhook is resumed


class InvalidWebhook(errors.Invalid):
    slug = "invalid-webhook"
    title = "This webhook can't be kept"


def create_webhook(
    *, workspace: Workspace, actor: Actor, url: str, note: str = "", events: Iterable[str] = ()
) -> tuple[Webhook, str]:
    """Make a webhook and return it with its secret; raises InvalidWebhook."""
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=workspace.pk)  # two at once don't pass the limit
        if Webhook.objects.filter(workspace=workspace).count() >= MOST_WEBHOOKS:
            raise InvalidWebhook(f"A workspace has at most {MOST_WEBHOOKS} webhooks.")
        webhook = Webhook.objects.create(
            workspace=workspace,
            public_id=ids.new_id("whk"),
            url=clean_url(url),
            note=note.strip()[:200],
            events=_known(events),
            created_by=actor.label[:200],
            created_at=clock.now(),
        )
        _log(webhook, actor, "create_webhook")
    return webhook, reveal_secret(webhook)


def change_webhook(*, webhook: Webhook, actor: Actor, url: str, note: str, events: Iterable[str]) -> None:
    """Change where it is and what it hears; raises InvalidWebhook."""
    webhook.url, webhook.note, webhook.events = clean_url(url), note.strip()[:200], _known(events)
    with transaction.atomic():
        webhook.save(update_fields=["url", "note", "events"])
        _log(webhook, actor, "change_webhook")


def pause_webhook(*, webhook: Webhook, actor: Actor) -> None:
    """Tell it nothing more until it is resumed; what waits for it goes on waiting."""
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(active=False, paused_because="")
        _log(webhook, actor, "pause_webhook")


def resume_webhook(*, webhook: Webhook, actor: Actor) -> None:
    """Tell it again, first what has been waiting."""
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(active=True, paused_because="", failures=0)
        _log(webhook, actor, "resume_webhook")
        waiting = WebhookDelivery.objects.filter(webhook=webhook, state=DeliveryState.WAITING).order_by("batch")
        for batch in waiting.values_list("batch", flat=True).distinct()[:MOST_TOLD_AGAIN]:
            _leave_job(webhook.workspace, batch)


def renew_secret(*, webhook: Webhook, actor: Actor) -> str:
    """Make a new secret and return it; the old one signs nothing any more."""
    with transaction.atomic():
        Webhook.objects.filter(pk=webhook.pk).update(generation=F("generation") + 1)
        webhook.refresh_from_db()
        _log(webhook, actor, "renew_webhook_secret")
    return reveal_secret(webhook)


def remove_webhook(*, webhook: Webhook, actor: Actor) -> None:
    """Remove it with what it was told and was to be told."""
    with transaction.atomic():
        _log(webhook, actor, "remove_webhook")
        webhook.delete()


def leave_test(*, webhook: Webhook) -> WebhookDelivery:
    """Leave a test message for one webhook; raises InvalidWebhook where it is paused."""
    if not webhook.active:
        raise InvalidWebhook("It is paused; resume it first.")
    with transaction.atomic():
        batch = ids.new_id("whb")
        delivery = WebhookDelivery.objects.create(
            webhook=webhook, public_id=ids.new_id("whd"), event=TEST, batch=batch, created_at=clock.now()
        )
        _leave_job(webhook.workspace, batch)
    return delivery


def tell_again(*, webhook: Webhook, public_id: str) -> None:
    """Leave a message that failed once more; one in any other state is left alone."""
    batch = ids.new_id("whb")
    failed = WebhookDelivery.objects.filter(webhook=webhook, public_id=public_id, state=DeliveryState.FAILED)
    with transaction.atomic():
        if failed.update(state=DeliveryState.WAITING, batch=batch):
            _leave_job(webhook.workspace, batch)


def leave_messages(
    *, workspace: Workspace, action: str, change_set: ChangeSet | None = None, audit_event: AuditEvent | None = None
) -> None:
    """Leave a message of one line of the log for each webhook that wants it, in the caller's transaction."""
    event = event_of(action)
    if event is None:
        return
    active = Webhook.objects.filter(workspace=workspace, active=True).values_list("pk", "events")
    wanted = [pk for pk, chosen in active if is_wanted(event, chosen)]
    if not wanted:
        return
    batch, now = ids.new_id("whb"), clock.now()
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            webhook_id=pk,
            public_id=ids.new_id("whd"),
            event=event,
            change_set=change_set,
            audit_event=audit_event,
            batch=batch,
            created_at=now,
        )
        for pk in wanted
    )
    _leave_job(workspace, batch)


def note_outcome(*, delivery: WebhookDelivery, outcome: Outcome, is_last: bool) -> None:
    """Keep how a message was received; too many failures in a row pause the webhook."""
    state = DeliveryState.DELIVERED if outcome.delivered else DeliveryState.FAILED if is_last else DeliveryState.WAITING
    with transaction.atomic():
        WebhookDelivery.objects.filter(pk=delivery.pk).update(
            state=state,
            attempts=F("attempts") + 1,
            status_code=outcome.status_code,
            problem=outcome.problem,
            detail=outcome.detail,
            took_ms=outcome.took_ms,
        )
        webhook = Webhook.objects.filter(pk=delivery.webhook_id)
        if outcome.delivered:
            webhook.exclude(failures=0).update(failures=0)
            return
        webhook.update(failures=F("failures") + 1)
        webhook.filter(failures__gte=PAUSED_AFTER, active=True).update(active=False, paused_because=outcome.problem)


def forget_old_deliveries(*, days: int = KEPT_DAYS) -> int:
    """Remove messages older than that, told or not, and return how many."""
    oldest = clock.now() - timedelta(days=days)
    removed, _ = WebhookDelivery.objects.filter(created_at__lt=oldest).delete()
    return removed


def clean_url(url: str) -> str:
    """Return an address that messages can be posted to; raises InvalidWebhook. Where it leads is judged at each call."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        fits = parts.scheme in ("http", "https") and bool(host) and (parts.port is None or parts.port > 0)
    except (ValueError, UnicodeError):
        fits = False
    plain = len(url) <= 2000 and url.isascii() and url.isprintable() and " " not in url
    if not fits or not plain or "@" in parts.netloc or parts.fragment:
        raise InvalidWebhook("Give an address that begins with https:// or http://, without user name or fragment.")
    return url


def _known(events: Iterable[str]) -> list[str]:
    chosen = set(events)
    if unknown := chosen - set(EVENTS):
        raise InvalidWebhook(f"There is no event {min(unknown)[:40]}.")
    return [event for event in EVENTS if event in chosen]


def _leave_job(workspace: Workspace, batch: str) -> None:
    enqueue_job(workspace=workspace, kind=JOB_KIND, args={"batch": batch}, max_attempts=MAX_ATTEMPTS)


def _log(webhook: Webhook, actor: Actor, action: str) -> None:
    record_event(
        workspace=webhook.workspace,
        actor=actor,
        action=action,
        subject_type="webhook",
        subject_id=webhook.public_id,
        detail={"url": webhook.url, "events": webhook.events},
    )
