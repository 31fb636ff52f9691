"""Storing what a tool answered, and announcing what its run changed."""

from memoryhub.flows.invalidate import announce_write
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.store import Stored, ToolValue, store_tool_result
from memoryhub.workspaces.models import Session
from memoryhub.workspaces.principals import Principal


def put_and_announce(*, principal: Principal, session: Session, call: ToolCall, given: ToolValue) -> tuple[Stored, int]:
    """Store the result by its tool's policy; return the outcome and how many entries the run made invalid."""
    done = store_tool_result(session=session, call=call, given=given)
    if not done.changes and not done.may_change_anything:
        return done, 0
    invalidated = announce_write(
        workspace=principal.workspace,
        tool=call.tool,
        changes=done.changes,
        actor=principal.actor,
        door="api",
        failed=given.is_error,
        anything=done.may_change_anything,
    )
    return done, invalidated
