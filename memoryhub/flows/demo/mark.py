"""How a demo's workspace is known: only what the demo made does the demo take away."""

from memoryhub.workspaces.models import Workspace

DEMO = "demo"
DEMO_SETTING = "is_demo"  # in the workspace's settings


def is_demo(workspace: Workspace) -> bool:
    """Tell whether the demo made this workspace."""
    return bool(workspace.settings.get(DEMO_SETTING))
