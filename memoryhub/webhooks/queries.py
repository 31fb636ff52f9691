"""Reading webhooks and their deliveries."""

from django.conf import settings
from django.db.models import QuerySet

from memoryhub.common import errors
from memoryhub.webhooks.domain.signing import secret_of
from memoryhub.webhooks.models import DeliveryState, Webhook, WebhookDelivery
from memoryhub.workspaces.models import Workspace

MOST_WEBHOOKS = 50  # of a workspace
NEWEST_FIRST = [("id", "desc")]


class UnknownWebhook(errors.NotFound):
    slug = "unknown-webhook"
    title = "Unknown webhook"


def list_webhooks(workspace: Workspace) -> list[Webhook]:
    """The webhooks of a workspace, the newest first; there are MOST_WEBHOOKS at the most."""
    return list(Webhook.objects.filter(workspace=workspace).order_by("-id"))


def get_webhook(workspace: Workspace, public_id: str) -> Webhook:
    """One webhook; raises UnknownWebhook."""
    webhook = Webhook.objects.filter(workspace=workspace, public_id=public_id).first()
    if webhook is None:
        raise UnknownWebhook(f"There is no webhook {public_id[:40]} here.")
    return webhook


def reveal_secret(webhook: Webhook) -> str:
    """The secret that signs its messages: shown when it is made, never stored."""
    return secret_of(webhook.public_id, webhook.generation, settings.KEY_PEPPER)


def list_deliveries(webhook: Webhook) -> QuerySet[WebhookDelivery]:
    """What it was told and is to be told, to be cut by cursor."""
    return WebhookDelivery.objects.filter(webhook=webhook).select_related("change_set")


def list_waiting(batch: str) -> list[WebhookDelivery]:
    """The messages of a batch that are still to be told, the oldest first; those of a paused webhook wait."""
    rows = WebhookDelivery.objects.filter(batch=batch, state=DeliveryState.WAITING, webhook__active=True)
    return list(rows.select_related("webhook__workspace", "change_set", "audit_event").order_by("id"))
