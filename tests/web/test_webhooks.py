"""The pages of webhooks: a secret shown once, messages with their fate, words beside the field."""

import re

import pytest
from django.test import Client

from memoryhub.web.webhook_words import EVENT_LABELS, PROBLEM_WORDS
from memoryhub.webhooks.domain.events import EVENTS, TEST
from memoryhub.webhooks.models import Webhook, WebhookDelivery
from memoryhub.webhooks.posting import PROBLEMS
from memoryhub.webhooks.queries import reveal_secret
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace

NEW = {"url": "https://example.org/hook", "note": "for the chat", "events": ["memory.created"]}


@pytest.fixture
def hook(admin: Client, workspace: Workspace) -> Webhook:
    admin.post("/settings/webhooks/new", NEW)
    return Webhook.objects.get()


def test_the_secret_of_a_new_webhook_is_shown_once_and_not_stored(admin: Client, workspace: Workspace) -> None:
    shown = admin.post("/settings/webhooks/new", NEW)

    hook = Webhook.objects.get()
    secret = reveal_secret(hook)
    assert secret in shown.content.decode().replace("&#x2F;", "/").replace("&#x3D;", "=")
    assert "no-store" in shown["Cache-Control"]
    assert secret not in admin.get(f"/settings/webhooks/{hook.public_id}").content.decode()
    assert secret not in str(Webhook.objects.values().get())
    assert (hook.note, hook.events, hook.workspace) == ("for the chat", ["memory.created"], workspace)


def test_a_bad_address_is_told_beside_its_field_and_keeps_what_was_typed(admin: Client) -> None:
    page = admin.post("/settings/webhooks/new", {**NEW, "url": "file:///etc/passwd"})

    assert page.status_code == 422
    assert 'id="id_url_error"' in page.content.decode()
    assert "for the chat" in page.content.decode()
    assert not Webhook.objects.exists()


def test_the_list_leads_to_each_with_its_state(admin: Client, hook: Webhook) -> None:
    Webhook.objects.update(active=False, paused_because="timeout")

    page = admin.get("/settings/webhooks").content.decode()

    assert f'href="/settings/webhooks/{hook.public_id}"' in page
    assert "paused" in page
    assert "It did not answer in time." in page


def test_a_test_message_is_left_for_the_worker_unless_it_is_paused(admin: Client, hook: Webhook) -> None:
    admin.post(f"/settings/webhooks/{hook.public_id}/test")
    assert WebhookDelivery.objects.get().event == "test"
    page = admin.get(f"/settings/webhooks/{hook.public_id}").content.decode()
    assert 'hx-trigger="every 3s"' in page  # until it is known how it was taken
    part = admin.get(f"/settings/webhooks/{hook.public_id}", headers={"HX-Request": "true"}).content.decode()
    assert "Test message" in part
    assert "<html" not in part
    assert Job.objects.filter(kind="deliver_webhooks").count() == 1

    admin.post(f"/settings/webhooks/{hook.public_id}/pause")
    page = admin.post(f"/settings/webhooks/{hook.public_id}/test", follow=True)

    assert "resume it first" in page.content.decode()
    assert WebhookDelivery.objects.count() == 1


def test_messages_are_shown_with_what_went_wrong_and_can_be_sent_again(admin: Client, hook: Webhook) -> None:
    admin.post(f"/settings/webhooks/{hook.public_id}/test")
    WebhookDelivery.objects.update(state="failed", attempts=8, problem="status", status_code=500, detail="<b>oops")

    page = admin.get(f"/settings/webhooks/{hook.public_id}").content.decode()
    message = re.search(r'name="message" value="([^"]+)"', page)
    assert message is not None
    admin.post(f"/settings/webhooks/{hook.public_id}/again", {"message": message[1]})

    Webhook.objects.update(active=False)
    paused = admin.get(f"/settings/webhooks/{hook.public_id}").content.decode()

    assert "500 &lt;b&gt;oops" in page
    assert 'name="message"' not in paused
    assert WebhookDelivery.objects.get().state == "waiting"


def test_it_is_changed_and_removed(admin: Client, hook: Webhook) -> None:
    admin.post(f"/settings/webhooks/{hook.public_id}", {"url": "https://example.org/new", "note": ""})
    hook.refresh_from_db()
    assert (hook.url, hook.note, hook.events) == ("https://example.org/new", "", [])

    assert "hears nothing more" in admin.get(f"/settings/webhooks/{hook.public_id}/remove").content.decode()
    admin.post(f"/settings/webhooks/{hook.public_id}/remove")
    assert not Webhook.objects.exists()


def test_a_webhook_of_another_workspace_is_not_there(admin: Client, hook: Webhook, other_workspace: Workspace) -> None:
    Webhook.objects.update(workspace=other_workspace)

    assert admin.get(f"/settings/webhooks/{hook.public_id}").status_code == 404
    assert admin.post(f"/settings/webhooks/{hook.public_id}/secret").status_code == 404


def test_every_event_and_every_problem_has_its_words() -> None:
    assert set(EVENT_LABELS) == {*EVENTS, TEST}
    assert set(PROBLEM_WORDS) == set(PROBLEMS)
