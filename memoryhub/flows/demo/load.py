"""Loading the demo: all acts in their order, in a workspace that is made anew."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from memoryhub.common import clock, errors
from memoryhub.flows.demo.background import open_sessions, tell_background
from memoryhub.flows.demo.conversations import open_conversations, tell_conversations
from memoryhub.flows.demo.errands import tell_errands
from memoryhub.flows.demo.mark import DEMO, DEMO_SETTING, is_demo
from memoryhub.flows.demo.memories import tell_memories
from memoryhub.flows.demo.removal import remove_workspace
from memoryhub.flows.demo.stage import AGENTS, DAYS, Stage
from memoryhub.flows.demo.tools import tell_tools
from memoryhub.prompt_cache.services.doctor import EXCERPTS_SETTING
from memoryhub.prompt_cache.services.findings import find_out
from memoryhub.workspaces.models import Membership, Role, Workspace
from memoryhub.workspaces.principals import Actor
from memoryhub.workspaces.services import create_api_key, create_workspace, ensure_agent, enter_workspace, set_role

TITLE = "Lantern Tea · 灯笼茶舍"
TIME_ZONE = "Europe/Berlin"
ACTS: tuple[Callable[[Stage], None], ...] = (
    open_conversations,
    open_sessions,
    tell_memories,
    tell_conversations,
    tell_background,
    tell_tools,
    tell_errands,
)
Progress = Callable[[int, int], None]


class NotTheDemo(errors.Conflict):
    slug = "not-the-demo"
    title = "This workspace is not the demo"


@dataclass(frozen=True, slots=True)
class LoadedDemo:
    """The demo's workspace, and who was let in."""

    workspace: Workspace
    admins: tuple[str, ...]


def load_demo(*, progress: Progress | None = None) -> LoadedDemo:
    """Fill the workspace `demo` with two weeks that end now; one that is there already is made anew.

    1. The old demo goes; a workspace of that name that somebody made themselves stops the load. 2. The workspace, its
    agents and their keys. 3. The acts, and what the report sums up by a job. 4. Every admin of the hub becomes an admin
    here and enters it.
    """
    report = progress or (lambda done, total: None)
    report(0, len(ACTS))
    members = _remove_old_demo()
    now = clock.now()
    stage = _set_stage(now)
    for done, act in enumerate(ACTS, start=1):
        act(stage)
        report(done, len(ACTS))
    find_out(workspace=stage.workspace)
    return LoadedDemo(stage.workspace, _let_in(stage.workspace, members))


def find_demo() -> Workspace | None:
    """Return the demo's workspace, None where there is none (a workspace of that name that is no demo is none)."""
    workspace = Workspace.objects.filter(name=DEMO).first()
    return workspace if workspace is not None and is_demo(workspace) else None


def remove_demo(*, workspace: Workspace) -> int:
    """Remove the demo's workspace with every row of it and return how many; raises NotTheDemo for another workspace."""
    if not is_demo(workspace):
        raise NotTheDemo(f"The workspace {workspace.name} was not made by the demo, so the demo does not remove it.")
    return remove_workspace(workspace)


def _remove_old_demo() -> list[tuple[int, str]]:
    """Remove the demo that is there and return who had which role in it."""
    workspace = Workspace.objects.filter(name=DEMO).first()
    if workspace is None:
        return []
    members = list(Membership.objects.filter(workspace=workspace).values_list("user_id", "role"))
    remove_demo(workspace=workspace)
    return members


def _set_stage(now: datetime) -> Stage:
    began_at = now - timedelta(days=DAYS)
    with clock.replaying(began_at):
        workspace = create_workspace(name=DEMO, title=TITLE, time_zone=TIME_ZONE)
        workspace.settings = {DEMO_SETTING: True, EXCERPTS_SETTING: True}
        workspace.save(update_fields=["settings"])
        keys = {}
        for name in AGENTS:
            ensure_agent(workspace=workspace, name=name)
            key, _ = create_api_key(workspace=workspace, name=name, created_by="ana")  # nobody gets to see the token
            keys[name] = Actor("key", key.lookup, key.name)
    return Stage(workspace, now, keys)


def _let_in(workspace: Workspace, members: list[tuple[int, str]]) -> tuple[str, ...]:
    """Make every admin of the hub an admin of the demo, and give former members their roles back."""
    admins = Membership.objects.filter(role=Role.ADMIN).select_related("user").order_by("user__username")
    names = []
    for membership in {row.user_id: row for row in admins}.values():
        set_role(workspace=workspace, user=membership.user, role=Role.ADMIN)
        enter_workspace(workspace=workspace, user=membership.user)
        names.append(membership.user.username)
    _restore_members(workspace, members)
    return tuple(names)


def _restore_members(workspace: Workspace, members: list[tuple[int, str]]) -> None:
    now = clock.now()
    rows = [Membership(workspace=workspace, user_id=user, role=role, created_at=now) for user, role in members]
    Membership.objects.bulk_create(rows, ignore_conflicts=True)
