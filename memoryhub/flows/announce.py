"""Telling webhooks what happened: the log's line and the memories that it concerns, as one signed message."""

import json
from typing import Any

from memoryhub import __version__
from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock, errors
from memoryhub.flows.memory_jobs import IN_STEPS
from memoryhub.flows.memory_uploads import JOB_KIND as IMPORT
from memoryhub.interchange.times import write_time
from memoryhub.long_term_memory.queries.changes import list_memory_ids
from memoryhub.webhooks.domain.signing import sign
from memoryhub.webhooks.models import WebhookDelivery
from memoryhub.webhooks.posting import post
from memoryhub.webhooks.queries import list_waiting, reveal_secret
from memoryhub.webhooks.services import note_outcome
from memoryhub.work.queries import list_unfinished_jobs

MOST_NAMED = 100  # memories that a message names


class NotDelivered(errors.Unavailable):
    slug = "webhook-not-delivered"
    title = "A webhook did not take its message"


def tell(*, batch: str, is_last: bool) -> dict[str, int]:
    """Post the messages of a batch that wait; returns how many were delivered and how many were given up.

    All of a batch tell of the same line of the log. Raises NotDelivered where one was not taken, or the change is still being
    written, and this is not the last attempt. A message is told at least once: a receiver knows one that it had by its id.
    """
    waiting = list_waiting(batch)
    if not waiting:
        return {"delivered": 0, "given_up": 0}
    change_set = waiting[0].change_set
    if change_set is not None and not is_last and is_under_way(change_set):
        raise NotDelivered(f"{change_set.public_id} is still being written.")
    body = json.dumps(message_of(waiting[0]), ensure_ascii=False, separators=(",", ":")).encode()
    problems = []
    for delivery in waiting:
        outcome = post(delivery.webhook.url, body, headers_of(delivery, body))
        note_outcome(delivery=delivery, outcome=outcome, is_last=is_last)
        if not outcome.delivered:
            why = " ".join(str(part) for part in (outcome.problem, outcome.status_code, outcome.detail) if part)
            problems.append(f"{delivery.webhook.url}: {why}")
    if problems and not is_last:
        raise NotDelivered("\n".join(problems))
    return {"delivered": len(waiting) - len(problems), "given_up": len(problems)}


def is_under_way(change_set: ChangeSet) -> bool:
    """Whether a job still writes under a change set. An import's job does not say which is its own, so any counts for all."""
    for job in list_unfinished_jobs(change_set.workspace, kinds=(*IN_STEPS, IMPORT)):
        if change_set.action == "import" if job.kind == IMPORT else job.args.get("change_set") == change_set.public_id:
            return True
    return False


def message_of(delivery: WebhookDelivery) -> dict[str, Any]:
    """What is told: names and counts, never the text of a memory."""
    told = {"type": delivery.event, "timestamp": write_time(delivery.created_at)}
    data: dict[str, Any] = {"workspace": delivery.webhook.workspace.name}
    line = delivery.change_set or delivery.audit_event
    if line is not None:
        data |= {"action": line.action, "actor": {"kind": line.actor_kind, "label": line.actor_label}}
    if delivery.change_set is not None:
        ids = list_memory_ids(delivery.change_set, limit=MOST_NAMED)
        data |= {
            "change_set": delivery.change_set.public_id,
            "reason": delivery.change_set.reason,
            "door": delivery.change_set.door,
            "subject_count": max(delivery.change_set.subject_count, len(ids)),
            "memories": ids,
        }
    elif delivery.audit_event is not None:
        event = delivery.audit_event
        data |= {"subject": {"type": event.subject_type, "id": event.subject_id}, "detail": event.detail}
    return {**told, "data": data}


def headers_of(delivery: WebhookDelivery, body: bytes) -> dict[str, str]:
    """The headers that name and prove a message."""
    timestamp = int(clock.now().timestamp())
    return {
        "Content-Type": "application/json",
        "User-Agent": f"MemoryHub/{__version__}",
        "webhook-id": delivery.public_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(reveal_secret(delivery.webhook), delivery.public_id, timestamp, body),
    }
