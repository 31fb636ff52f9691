"""Reads of tool policies."""

from django.db.models import QuerySet

from memoryhub.common import errors
from memoryhub.session_cache.domain.storing import PolicyRule
from memoryhub.session_cache.models import ToolPolicy
from memoryhub.workspaces.models import Workspace


class UnknownPolicy(errors.NotFound):
    slug = "unknown-tool-policy"
    title = "This tool has no policy"


def find_policy(workspace: Workspace, tool: str) -> ToolPolicy | None:
    """Return a tool's policy, or None for a tool that nobody has declared."""
    return ToolPolicy.objects.filter(workspace=workspace, tool=tool).first()


def get_policy(workspace: Workspace, tool: str) -> ToolPolicy:
    """Return a tool's policy."""
    policy = find_policy(workspace, tool)
    if policy is None:
        raise UnknownPolicy(f"The tool {tool[:200]!r} has no policy, so it is never cached.")
    return policy


def list_policies(workspace: Workspace) -> QuerySet[ToolPolicy]:
    """Return the workspace's policies, to be cut by cursor."""
    return ToolPolicy.objects.filter(workspace=workspace)


def rule_of(policy: ToolPolicy | None) -> PolicyRule | None:
    """Return the part of a policy that decides about storing."""
    if policy is None:
        return None
    return PolicyRule(
        cacheable=policy.cacheable,
        ttl_seconds=policy.ttl_seconds,
        strategy=policy.strategy,
        error_ttl_seconds=policy.error_ttl_seconds,
        stale_while_revalidate_seconds=policy.stale_while_revalidate_seconds,
        ttl_jitter=policy.ttl_jitter,
    )
