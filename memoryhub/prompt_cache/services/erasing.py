"""Letting go of every text of requests that the doctor holds: an erase can't tell whose words a body or an excerpt quotes."""

from django.db import transaction

from memoryhub.prompt_cache.models import Diagnosis, RequestFingerprint
from memoryhub.workspaces.models import Workspace


def forget_request_texts(*, workspace: Workspace) -> int:
    """Forget the workspace's kept bodies and excerpts and return how many bodies; hashes, costs and causes stay."""
    with transaction.atomic():
        bodies = RequestFingerprint.objects.filter(record__workspace=workspace, kept_body__isnull=False)
        forgotten = bodies.update(kept_body=None, kept_until=None)
        Diagnosis.objects.of(workspace).with_excerpts().update(before="", after="")
    return forgotten
