"""Changing a workspace's guards."""

from dataclasses import asdict, fields
from typing import Any

from django.db import transaction

from memoryhub.audit.services import record_event
from memoryhub.long_term_memory.queries.guards import SETTINGS_KEY, GuardSettings, get_guard_settings
from memoryhub.long_term_memory.services.writer import InvalidMemory, Writer
from memoryhub.workspaces.models import Workspace

MAX_WRITES = 1_000_000


def save_guard_settings(*, writer: Writer, changes: dict[str, Any]) -> GuardSettings:
    """Change some of the guards; unknown names and wrong types are refused."""
    known = {field.name: field.type for field in fields(GuardSettings)}
    for name, value in changes.items():
        if name not in known:
            raise InvalidMemory(f"There is no guard setting {name[:80]!r}.")
        if known[name] is bool and not isinstance(value, bool):
            raise InvalidMemory(f"{name} is true or false.")
    limit = changes.get("max_writes_per_minute", 0)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit <= MAX_WRITES:
        raise InvalidMemory(f"max_writes_per_minute lies between 0 and {MAX_WRITES}.")
    if changes.get("extracted_memories", "review") not in ("review", "unreviewed"):
        raise InvalidMemory("extracted_memories is review or unreviewed.")
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update().get(pk=writer.workspace.pk)
        before = asdict(get_guard_settings(workspace))
        workspace.settings = {**workspace.settings, SETTINGS_KEY: {**before, **changes}}
        workspace.save(update_fields=["settings"])
        record_event(
            workspace=workspace,
            actor=writer.actor,
            action="guard settings",
            subject_type="workspace",
            subject_id=workspace.name,
            detail={"before": before, "changes": changes},
        )
    writer.workspace.settings = workspace.settings
    return get_guard_settings(workspace)
