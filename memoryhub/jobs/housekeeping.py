"""Hourly tidying of the lower floors."""

from typing import Any

from django.contrib.sessions.backends.db import SessionStore

from memoryhub.audit.services import forget_old_replies
from memoryhub.webhooks.services import forget_old_deliveries
from memoryhub.work.models import Job
from memoryhub.work.services import forget_old_jobs
from memoryhub.workspaces import tallies


def run(job: Job) -> dict[str, Any]:
    """Forget replayed answers after a day, done jobs and told messages after a month, sign-ins that ended, counts that are over."""
    SessionStore.clear_expired()
    tallies.forget_old()
    return {"replies": forget_old_replies(), "jobs": forget_old_jobs(), "messages": forget_old_deliveries()}
