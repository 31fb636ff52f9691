"""When each kind of thing last reached the workspace. Every line is one indexed query."""

from datetime import datetime

from django.utils.translation import gettext as _

from memoryhub.audit.queries import last_write_by_a_key_at
from memoryhub.prompt_cache.queries.records import latest_record_at
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.queries import last_key_use_at, last_session_activity_at

Arrival = tuple[str, datetime | None]


def list_last_arrivals(workspace: Workspace) -> list[Arrival]:
    """Return (what, when) of the last key use, usage record, active session, and write to memory by an agent."""
    return [
        (_("A key was used"), last_key_use_at(workspace)),
        (_("Usage was recorded"), latest_record_at(workspace)),
        (_("A session was active"), last_session_activity_at(workspace)),
        (_("An agent wrote to memory"), last_write_by_a_key_at(workspace)),
    ]
