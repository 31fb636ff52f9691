"""The hub's worker with one more kind of job: a nap that leaves one line in the log, however often it is begun."""

import os
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

from memoryhub.audit.models import AuditEvent  # noqa: E402
from memoryhub.audit.services import record_event  # noqa: E402
from memoryhub.jobs.handlers import HANDLERS  # noqa: E402
from memoryhub.workspaces.principals import Actor  # noqa: E402
from memoryhub.workspaces.queries import get_workspace  # noqa: E402


def nap(job):
    time.sleep(job.args["seconds"])
    if not AuditEvent.objects.filter(subject_id=job.public_id).exists():
        record_event(
            workspace=get_workspace("default"),
            actor=Actor("job", job.public_id, "nap"),
            action="job.napped",
            subject_type="job",
            subject_id=job.public_id,
        )
    return {"slept": job.args["seconds"]}


if __name__ == "__main__":
    HANDLERS["nap"] = nap
    call_command("worker")
