"""The doctor's work by the clock."""

from typing import Any

from memoryhub.common import errors
from memoryhub.flows.memory_price import note_carried_memories
from memoryhub.prompt_cache.services.doctor import diagnose_pending, forget_kept_bodies
from memoryhub.work.models import Job


def run_diagnosis(job: Job) -> dict[str, Any]:
    """Diagnose what was recorded in bulk."""
    if job.workspace is None:
        raise errors.Invalid("A diagnosis belongs to a workspace.")
    return {"diagnosed": diagnose_pending(workspace=job.workspace)}


def run_forgetting(job: Job) -> dict[str, Any]:
    """Note which memories the kept request bodies carry, then forget the bodies whose hour is over."""
    return {"carried": note_carried_memories(), "bodies": forget_kept_bodies()}
