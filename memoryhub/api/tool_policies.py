"""What may be done with a tool's results."""

from typing import Any

from ninja import Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.tool_results import PolicyIn, PolicyOut, PolicyPage
from memoryhub.session_cache.queries import policies
from memoryhub.session_cache.services.policies import set_tool_policy

router = Router(tags=["Tool results"])


@router.get(
    "/tool-policies",
    auth=requires("cache:read"),
    response=PolicyPage,
    operation_id="listToolPolicies",
    summary="List tool policies by tool",
)
def list_tool_policies(request: ApiRequest, limit: Limit, cursor: Cursor = None) -> Any:
    """A tool that is not here is never cached, and a run of it counts as a write of anything."""
    found = policies.list_policies(request.principal.workspace)
    order = [("tool", "asc"), ("id", "asc")]
    return page(found, order=order, cursor=cursor, limit=limit, shape=PolicyOut.of)


@router.get(
    "/tool-policies/{tool}",
    auth=requires("cache:read"),
    response=PolicyOut,
    operation_id="getToolPolicy",
    summary="Read a tool's policy",
)
def get_tool_policy(request: ApiRequest, tool: str) -> Any:
    """404 where the tool has none, and so is never cached."""
    return PolicyOut.of(policies.get_policy(request.principal.workspace, tool))


@router.put(
    "/tool-policies/{tool}",
    auth=requires("cache:write"),
    response=PolicyOut,
    operation_id="setToolPolicy",
    summary="Set a tool's policy",
)
def put_tool_policy(request: ApiRequest, tool: str, body: PolicyIn) -> Any:
    """Replaces the whole policy. `invalidates` names tools (exact or a glob) or tags that a run of this tool makes invalid."""
    principal = request.principal
    policy = set_tool_policy(workspace=principal.workspace, tool=tool, choice=body.choice(), actor=principal.actor)
    return PolicyOut.of(policy)
