"""When each kind of thing last reached the workspace. Every line is one indexed query."""

from datetime import datetime

from django.db.models import Max
from django.utils.translation import gettext as _

from memoryhub.workspaces.models import ApiKey, Session, Workspace

Arrival = tuple[str, datetime | None]


def list_last_arrivals(workspace: Workspace) -> list[Arrival]:
    """Return (what, when) of the last key use, session, usage record and memory."""
    return [
        (_("A key was used"), ApiKey.objects.filter(workspace=workspace).aggregate(at=Max("last_used_at"))["at"]),
        (
            _("A session was active"),
            Session.objects.filter(workspace=workspace).aggregate(at=Max("last_active_at"))["at"],
        ),
    ]
