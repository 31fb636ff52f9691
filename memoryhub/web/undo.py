"""Taking a change back: a message with a button for it, whose change set travels in its extra tags, and the deed."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from memoryhub.flows.memory_jobs import leave_revert_job
from memoryhub.long_term_memory.queries.changes import touches_more_than
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.work.models import Job

_PREFIX = "undo:"
TAKEN_BACK_AT_ONCE = 2_000  # memories, in about a second; a change set of more goes back by a job


def offer(request: HttpRequest, text: str, change_set_id: str) -> None:
    """Say what was done, with an undo button where there is something to take back."""
    messages.success(request, text, extra_tags=f"{_PREFIX}{change_set_id}" if change_set_id else "")


def change_set_of(message: Any) -> str:
    """Return the change set that a message offers to undo, or nothing."""
    tags = message.extra_tags or ""
    return tags.removeprefix(_PREFIX) if tags.startswith(_PREFIX) else ""


def leave_to_job(*, writer: Writer, change_set_id: str, force: bool = False) -> Job | None:
    """Leave a job that takes a large change set back; None where it is small enough to do it now."""
    if not touches_more_than(writer.workspace, change_set_id, TAKEN_BACK_AT_ONCE):
        return None
    return leave_revert_job(writer=writer, change_set_id=change_set_id, force=force)
