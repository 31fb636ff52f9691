"""When each kind of thing last reached the workspace. Every line is one indexed query."""

from datetime import datetime

from django.db.models import Max
from django.utils.translation import gettext as _

from memoryhub.audit.models import ChangeSet
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.workspaces.models import ApiKey, Session, Workspace

Arrival = tuple[str, datetime | None]


def list_last_arrivals(workspace: Workspace) -> list[Arrival]:
    """Return (what, when) of the last key use, usage record, active session, and write to memory by an agent."""
    usage = UsageRecord.objects.of(workspace).order_by("-id").values_list("created_at", flat=True)
    written = ChangeSet.objects.filter(workspace=workspace, actor_kind="key").order_by("-created_at", "-id")
    return [
        (_("A key was used"), ApiKey.objects.filter(workspace=workspace).aggregate(at=Max("last_used_at"))["at"]),
        (_("Usage was recorded"), usage.first()),
        (
            _("A session was active"),
            Session.objects.filter(workspace=workspace).aggregate(at=Max("last_active_at"))["at"],
        ),
        (_("An agent wrote to memory"), written.values_list("created_at", flat=True).first()),
    ]
