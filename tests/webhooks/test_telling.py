"""A change is told to the webhooks that want it: signed, without the memory's text, again until it is taken or given up."""

import json
import socket
from typing import Any

import pytest
from django.db import transaction

from memoryhub.audit.services import record_event
from memoryhub.flows.invalidate import announce
from memoryhub.flows.memory_jobs import leave_bulk_job
from memoryhub.invalidation.domain.selector import Selector
from memoryhub.invalidation.services import Announcement
from memoryhub.jobs import tasks
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services import BulkAction, bulk_edit
from memoryhub.web.webhooks import PROOF
from memoryhub.webhooks import posting, services
from memoryhub.webhooks.models import DeliveryState, Webhook, WebhookDelivery
from memoryhub.work.models import Job, JobState
from memoryhub.workspaces.principals import Actor
from tests.web.memory_cast import agent_of, make_memories, make_memory
from tests.webhooks.receiver import running_receiver

ANA = Actor("user", "1", "ana")


@pytest.fixture
def receiver(settings):
    settings.WEBHOOKS_PRIVATE = True
    with running_receiver() as running:
        yield running


def hook(workspace, url, **fields) -> tuple[Webhook, str]:
    return services.create_webhook(workspace=workspace, actor=ANA, url=url, **fields)


def work() -> list[Job]:
    """Do what waits, as the worker would, once."""
    waiting = list(
        Job.objects.filter(kind=services.JOB_KIND, state__in=[JobState.QUEUED, JobState.FAILED]).order_by("id")
    )
    Job.objects.filter(pk__in=[job.pk for job in waiting]).update(run_after="2000-01-01T00:00Z")
    for job in waiting:
        tasks.run_now(job.pk)
        job.refresh_from_db()
    return waiting


def states() -> list[tuple[str, int, str]]:
    return list(WebhookDelivery.objects.order_by("id").values_list("state", "attempts", "problem"))


def proven(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """What a receiver runs: the very lines that the page shows."""
    known: dict[str, Any] = {}
    exec(PROOF, known)
    return known["is_from_memoryhub"](secret, headers, body)


def test_a_new_memory_is_told_signed_and_without_its_text(workspace, receiver):
    _, secret = hook(workspace, receiver.url)
    memory = make_memory(workspace, "The door code is 4711.", agent="ops")

    (job,) = work()

    assert job.state == JobState.DONE
    assert job.result == {"delivered": 1, "given_up": 0}
    ((headers, body),) = receiver.got
    told = json.loads(body)
    assert told["type"] == "memory.created"
    assert told["data"]["memories"] == [memory.public_id]
    assert told["data"]["workspace"] == "home"
    assert told["data"]["change_set"].startswith("chg_")
    assert b"4711" not in body
    assert headers["content-type"] == "application/json"
    assert proven(secret, headers, body)
    assert not proven(secret, headers, body + b" ")
    assert states() == [("delivered", 1, "")]


def test_a_new_secret_makes_the_old_one_prove_nothing(workspace, receiver):
    made, old = hook(workspace, receiver.url)
    new = services.renew_secret(webhook=made, actor=ANA)
    make_memory(workspace)
    work()

    ((headers, body),) = receiver.got
    assert (proven(new, headers, body), proven(old, headers, body)) == (True, False)


def test_each_hears_what_it_chose_and_nobody_hears_of_another_workspace(workspace, other_workspace, receiver):
    hook(workspace, f"{receiver.url}?all")
    hook(workspace, f"{receiver.url}?prices", events=["prices.changed"])
    hook(other_workspace, f"{receiver.url}?elsewhere")
    WebhookDelivery.objects.all().delete()  # making the second one was told to the first
    Job.objects.all().delete()

    make_memory(workspace)
    work()

    assert len(receiver.got) == 1
    assert WebhookDelivery.objects.get().webhook.url.endswith("?all")


def test_settings_and_invalidations_are_told_with_what_they_are_about(workspace, receiver):
    hook(workspace, receiver.url, events=["settings.changed", "cache.invalidated"])
    record_event(workspace=workspace, actor=ANA, action="revoke_key", subject_type="key", subject_id="abcd1234")
    announce(
        workspace=workspace,
        announcement=Announcement(
            selector=Selector(tool="read_*"), reason="moved", strategy="manual", actor=ANA, door="web"
        ),
    )
    work()

    key, dropped = (json.loads(body) for _, body in receiver.got)
    assert (key["type"], key["data"]["subject"]) == ("settings.changed", {"type": "key", "id": "abcd1234"})
    assert dropped["type"] == "cache.invalidated"
    assert dropped["data"]["detail"]["selector"] == {"tool": "read_*"}


def test_a_write_that_is_rolled_back_is_not_told(workspace, receiver):
    hook(workspace, receiver.url)
    make_memories(workspace, ["a", "b"])
    WebhookDelivery.objects.all().delete()
    Job.objects.all().delete()

    bulk_edit(
        writer=agent_of(workspace), wanted=MemoryFilter(tags_none=["x"]), action=BulkAction(pin=True), dry_run=True
    )
    with transaction.atomic():
        make_memory(workspace, "c")
        transaction.set_rollback(True)

    assert not WebhookDelivery.objects.exists()
    assert not Job.objects.filter(kind=services.JOB_KIND).exists()


def test_a_refused_message_is_tried_again_until_it_is_taken(workspace, receiver):
    hook(workspace, receiver.url)
    make_memory(workspace)
    receiver.status, receiver.answer = 503, b"come <later>"

    (job,) = work()
    assert job.state == JobState.FAILED
    assert states() == [("waiting", 1, "status")]
    assert WebhookDelivery.objects.get().detail == "come <later>"
    receiver.status = 200
    (job,) = work()

    assert job.state == JobState.DONE
    assert states() == [("delivered", 2, "")]
    first, second = (headers["webhook-id"] for headers, _ in receiver.got)
    assert first == second


def test_those_that_took_it_are_not_told_again_for_the_others_sake(workspace, receiver):
    with running_receiver() as broken:
        hook(workspace, receiver.url)
        hook(workspace, broken.url)
        WebhookDelivery.objects.all().delete()
        Job.objects.all().delete()
        broken.status = 500
        make_memory(workspace)
        work()
        work()

        assert (len(receiver.got), len(broken.got)) == (1, 2)


def test_a_message_is_given_up_in_the_end_and_can_be_sent_again_by_hand(workspace, receiver):
    made, _ = hook(workspace, receiver.url)
    make_memory(workspace)
    receiver.status = 410
    for _ in range(services.MAX_ATTEMPTS):
        work()
    assert states() == [("failed", services.MAX_ATTEMPTS, "status")]
    assert work() == []

    receiver.status = 204
    services.tell_again(webhook=made, public_id=WebhookDelivery.objects.get().public_id)
    work()

    assert states() == [("delivered", services.MAX_ATTEMPTS + 1, "")]
    made.refresh_from_db()
    assert made.failures == 0


def test_too_many_failures_in_a_row_pause_it_and_resuming_tells_what_waits(workspace, receiver):
    made, _ = hook(workspace, receiver.url)
    Webhook.objects.update(failures=services.PAUSED_AFTER - 1)
    make_memory(workspace)
    receiver.status = 500
    work()

    made.refresh_from_db()
    assert (made.active, made.paused_because) == (False, "status")
    make_memory(workspace, "not told, it is paused")
    work()
    assert len(receiver.got) == 1

    receiver.status = 200
    services.resume_webhook(webhook=made, actor=ANA)
    work()

    made.refresh_from_db()
    assert (made.active, made.failures) == (True, 0)
    assert ("delivered", 2, "") in states()


def test_a_change_that_a_job_makes_in_steps_is_told_once_it_is_made(workspace, receiver):
    made = make_memories(workspace, ["a", "b"], agent="ops")
    hook(workspace, receiver.url)
    job = leave_bulk_job(writer=agent_of(workspace), wanted=MemoryFilter(tags_none=["x"]), action=BulkAction(pin=True))

    (telling,) = work()
    assert (telling.state, receiver.got) == (JobState.FAILED, [])
    assert states() == [("waiting", 0, "")]
    tasks.run_now(job.pk)
    work()

    ((_, body),) = receiver.got
    data = json.loads(body)["data"]
    assert (data["action"], data["subject_count"]) == ("bulk", 2)
    assert data["memories"] == [memory.public_id for memory in made]


def test_a_redirect_is_not_followed(workspace, receiver):
    hook(workspace, receiver.url)
    make_memory(workspace)
    receiver.status = 302
    work()

    assert len(receiver.got) == 1
    assert states() == [("waiting", 1, "status")]


def test_who_answers_drop_by_drop_is_cut_off(receiver, monkeypatch):
    monkeypatch.setattr(posting, "WHOLE_SECONDS", 0.3)
    receiver.drips = True

    outcome = posting.post(receiver.url, b"{}", {})

    assert (outcome.problem, outcome.delivered) == ("timeout", False)
    assert outcome.took_ms < 1_900


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://127.0.0.1:9/", "private"),
        ("http://localhost:9/", "private"),
        ("http://[::1]:9/", "private"),
        ("http://169.254.169.254/latest/meta-data", "private"),
        ("http://nowhere.invalid/", "unreachable"),
    ],
)
def test_no_private_network_is_called(url, problem):
    assert posting.post(url, b"{}", {}).problem == problem


def test_a_name_with_one_private_address_is_not_called(monkeypatch):
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *a, **k: [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]
    )
    monkeypatch.setattr(socket, "create_connection", lambda *a, **k: pytest.fail("it was called"))

    outcome = posting.post("http://rebind.example/", b"{}", {})

    assert (outcome.problem, outcome.detail) == ("private", "10.0.0.1")


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("8.8.8.8", False), ("2606:4700::1111", False), ("10.1.2.3", True), ("192.168.0.1", True), ("100.64.0.1", True),
        ("0.0.0.0", True), ("224.0.0.1", True), ("fe80::1%eth0", True), ("fc00::1", True), ("::ffff:10.0.0.1", True),
        ("64:ff9b::a00:1", True), ("64:ff9b::808:808", False), ("2002:a00:1::", True),
    ],
)  # fmt: skip
def test_which_addresses_are_private(address, private):
    assert posting.is_private(address) is private


@pytest.mark.parametrize(
    "url",
    ["", "ftp://example.org", "https://", "https://ana:secret@example.org", "https://example.org/#x", "https://exa mple.org",
     "https://example.org:99999", "javascript:alert(1)", "https://example.org/\nX: y", "https://ex.org/" + "a" * 2000],
)  # fmt: skip
def test_what_is_no_address_is_refused(workspace, url):
    with pytest.raises(services.InvalidWebhook):
        hook(workspace, url)


def test_a_workspace_has_a_limit(workspace, monkeypatch):
    monkeypatch.setattr(services, "MOST_WEBHOOKS", 1)
    hook(workspace, "https://example.org/1")

    with pytest.raises(services.InvalidWebhook, match="at most 1"):
        hook(workspace, "https://example.org/2")


def test_old_messages_are_forgotten(workspace, receiver):
    hook(workspace, receiver.url)
    make_memories(workspace, ["a"])
    WebhookDelivery.objects.update(created_at="2020-01-01T00:00Z")
    make_memories(workspace, ["b"])

    assert services.forget_old_deliveries() == 1
    assert WebhookDelivery.objects.get().state == DeliveryState.WAITING
