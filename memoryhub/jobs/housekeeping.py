"""Hourly tidying of the lower floors."""

from typing import Any

from django.contrib.sessions.backends.db import SessionStore

from memoryhub.audit.services import forget_old_replies
from memoryhub.work.models import Job
from memoryhub.work.services import forget_old_jobs


def run(job: Job) -> dict[str, Any]:
    """Forget replayed answers after a day, done jobs after a month, and sign-ins that ended."""
    SessionStore.clear_expired()
    return {"replies": forget_old_replies(), "jobs": forget_old_jobs()}
