"""Runs commands as a person would who pastes them: a shell in the checkout, Python, or the configuration of an MCP client.

Claude Code is not installed where the tests run. What stands in its place on the PATH sends what it sends: `claude` a request
to ANTHROPIC_BASE_URL by the SDK, `claude mcp add` a listing of the server's tools by an MCP client.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.live import ROOT, Hub

STAND_IN = """#!{python}
import os, sys
if sys.argv[1:3] == ["mcp", "add"]:
    from tests.commands.mcp_client import list_tools
    given = sys.argv[3:]
    url = next(one for one in given if one.startswith("http:"))
    name, _, value = given[given.index("--header") + 1].partition(": ")
    print(*list_tools(url, {{name: value}}))
else:
    from anthropic import Anthropic
    said = Anthropic(max_retries=0).messages.create(
        model="claude-opus-5-5", max_tokens=5, messages=[{{"role": "user", "content": "Hello"}}]
    )
    print(said.id)
"""


class Shell:
    """A home folder, a PATH and the environment of a person who has exported a key."""

    def __init__(self, hub: Hub, home: Path, *, provider_url: str) -> None:
        self.home = home
        (home / "bin").mkdir()
        claude = home / "bin" / "claude"
        claude.write_text(STAND_IN.format(python=sys.executable))
        claude.chmod(0o755)
        (home / ".curlrc").write_text("fail-with-body\n")  # an answer of 400 and above ends the command
        kept = {name: value for name, value in hub.environment.items() if not name.startswith("ANTHROPIC")}
        self.environment = {
            **kept,
            "HOME": str(home),
            "CURL_HOME": str(home),
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "MEMORYHUB_KEY": hub.key,
            "MEMORYHUB_SPOOL_DIR": str(home / "spool"),
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "ANTHROPIC_BASE_URL": provider_url,
        }

    def run(self, command: str) -> str:
        """Run the command in the checkout, return what it printed; fail where it fails."""
        return self._finish(["bash", "-euo", "pipefail", "-c", command], cwd=ROOT)

    def python(self, program: str) -> str:
        """Run a program of Python outside the checkout."""
        return self._finish([sys.executable, "-W", "error", "-c", program], cwd=self.home)

    def _finish(self, arguments: list[str], cwd: Path) -> str:
        done = subprocess.run(
            arguments, cwd=cwd, env=self.environment, capture_output=True, text=True, timeout=180, check=False
        )
        assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}\n{done.stderr}"
        assert "usage" not in done.stderr, done.stderr  # what the client warns of when a record did not arrive
        return done.stdout


def kind_of(block: str) -> str:
    """Return how a block of a page is run: "install", "key", "mcp", "python" or "shell"."""
    if block.startswith("pip install"):
        return "install"
    if block.startswith("export MEMORYHUB_KEY="):
        return "key"
    if block.startswith("{"):
        return "mcp" if "mcpServers" in json.loads(block) else "shell"
    return "python" if block.startswith(("import ", "from ")) else "shell"
