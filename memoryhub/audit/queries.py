"""Reads of the log."""

from datetime import datetime

from django.db.models import Q, QuerySet

from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.common import errors
from memoryhub.workspaces.models import Workspace


class UnknownChangeSet(errors.NotFound):
    slug = "unknown-change-set"
    title = "Unknown change set"


def list_change_sets(workspace: Workspace) -> QuerySet[ChangeSet]:
    """Return the workspace's change sets for keyset paging."""
    return ChangeSet.objects.filter(workspace=workspace).prefetch_related("reverted_by").select_related("reverts")


def get_change_set(workspace: Workspace, public_id: str) -> ChangeSet:
    """Return one change set."""
    try:
        return list_change_sets(workspace).get(public_id=public_id)
    except ChangeSet.DoesNotExist as error:
        raise UnknownChangeSet("There is no such change set in this workspace.") from error


def list_events(workspace: Workspace) -> QuerySet[AuditEvent]:
    """Return the workspace's audit events for keyset paging."""
    return AuditEvent.objects.filter(workspace=workspace)


def count_change_sets_after(workspace: Workspace, public_id: str, *, cap: int = 99) -> int:
    """Return how many change sets came after this one (all of them where it is unknown), counted up to the cap."""
    rows = ChangeSet.objects.filter(workspace=workspace)
    seen = rows.filter(public_id=public_id).values_list("created_at", "pk").first()
    if seen is not None:
        at, pk = seen
        rows = rows.filter(created_at__gte=at).filter(Q(created_at__gt=at) | Q(pk__gt=pk))
    return rows.order_by("-created_at", "-id")[:cap].count()


def last_write_by_a_key_at(workspace: Workspace) -> datetime | None:
    """Return when an agent last wrote."""
    written = ChangeSet.objects.filter(workspace=workspace, actor_kind="key").order_by("-created_at", "-id")
    return written.values_list("created_at", flat=True).first()
