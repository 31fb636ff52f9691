"""How to connect an agent to this hub, with commands ready to paste and a check that something arrived; what the figures mean."""

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from memoryhub.common import clock
from memoryhub.web import arrivals, formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.figure_words import definitions
from memoryhub.web.htmx import wants_part

FRESH_SECONDS = 60
REFRESH_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Way:
    """One way to connect: who it is for, what it gives, the commands."""

    slug: str
    title: str
    text: str
    commands: tuple[str, ...]


def _ways(base: str) -> list[Way]:
    return [
        Way(
            "claude-code",
            _("Claude Code, through the proxy"),
            _(
                "Every request is priced and diagnosed as it passes. Your provider's key goes through and is "
                "never stored."
            ),
            (f'export ANTHROPIC_BASE_URL="{base}/anthropic/k/$MEMORYHUB_KEY"\nclaude',),
        ),
        Way(
            "transcripts",
            _("Claude Code, from its transcripts"),
            _(
                "Reads what Claude Code already wrote on the hub's machine; run it again and only new lines are read. "
                "Files from another machine are uploaded under Cost report, Import."
            ),
            (".venv/bin/python manage.py import_transcripts ~/.claude/projects",),
        ),
        Way(
            "sdk",
            _("An agent with the Anthropic SDK"),
            _(
                "Records usage beside the call, caches tool results, and gives the agent a memory tool. The "
                "agent goes on when the hub is down."
            ),
            ("pip install '.[anthropic]'  # in a checkout of MemoryHub", _sdk_example(base)),
        ),
        Way(
            "mcp",
            _("An MCP client"),
            _("Eight tools to search, save and list memories and to use the tool cache."),
            (
                f'claude mcp add --transport http memoryhub {base}/mcp --header "Authorization: Bearer $MEMORYHUB_KEY"',
                _mcp_configuration(base),
            ),
        ),
        Way(
            "curl",
            _("Anything that speaks HTTP"),
            _("A memory, and what a request used. Every operation has an example in the API documentation."),
            (_curl_example(base), _usage_example(base)),
        ),
    ]


def _mcp_configuration(base: str) -> str:
    server = {"type": "http", "url": f"{base}/mcp", "headers": {"Authorization": "Bearer mh_…"}}
    return json.dumps({"mcpServers": {"memoryhub": server}}, indent=2, ensure_ascii=False)


def _curl_example(base: str) -> str:
    return " \\\n  ".join(
        (
            f"curl -s {base}/api/v1/memories",
            '-H "Authorization: Bearer $MEMORYHUB_KEY" -H "Content-Type: application/json"',
            """-d '{"content": "Prefers small pull requests.", "scope": {"agent": "reviewer"}}'""",
        )
    )


def _usage_example(base: str) -> str:
    usage = {"input_tokens": 3, "output_tokens": 812, "cache_read_input_tokens": 41850}
    body = {"message_id": "msg_1", "model": "claude-opus-5-5", "session": "s1", "agent": "reviewer", "usage": usage}
    return " \\\n  ".join(
        (
            f"curl -s {base}/api/v1/prompt-cache/usage",
            '-H "Authorization: Bearer $MEMORYHUB_KEY" -H "Content-Type: application/json"',
            f"-d '{json.dumps(body)}'",
        )
    )


def _sdk_example(base: str) -> str:
    return "\n".join(
        (
            "import os",
            "from anthropic import Anthropic",
            "from memoryhub.client import MemoryHub",
            "",
            'key = os.environ["MEMORYHUB_KEY"]',
            f'hub = MemoryHub("{base}", key, session="my-session")',
            "claude = hub.prompt_cache.track(Anthropic())",
            "",
            "claude.messages.create(",
            '    model="claude-haiku-5-5",',
            "    max_tokens=100,",
            '    messages=[{"role": "user", "content": "Hello"}],',
            ")",
            "",
            "",
            "@hub.tools.cached(ttl=600)",
            "def look_up(word: str) -> str:  # runs once for a word in this session",
            '    return f"what {word} means"',
            "",
            "",
            'print(look_up("breakpoint"))',
        )
    )


@require_GET
@member("viewer")
def connect(request: MemberRequest) -> HttpResponse:
    """Show every way with its commands for this server."""
    base = f"{request.scheme}://{request.get_host()}"
    return render(
        request,
        "hub/connect.html",
        {"ways": _ways(base), "base": base, "is_admin": request.principal.role == "admin", **_arrival(request)},
    )


@require_GET
@member("viewer")
def seen(request: MemberRequest) -> HttpResponseBase:
    """Answer whether something arrived, for the page that polls."""
    if not wants_part(request):
        return connect(request)
    return render(request, "hub/connect.html#seen", _arrival(request))


def _arrival(request: MemberRequest) -> dict[str, Any]:
    now = clock.now()
    found = arrivals.list_last_arrivals(request.principal.workspace)
    rows = [(label, moment, _words(moment, now)) for label, moment in found]
    newest = max((moment for _label, moment in found if moment), default=None)
    fresh = newest is not None and (now - newest).total_seconds() < FRESH_SECONDS
    return {"arrivals": rows, "fresh": fresh, "newest": newest, "refresh_seconds": REFRESH_SECONDS}


def _words(moment: Any, now: Any) -> str:
    return _("yes, %(time)s") % {"time": formats.ago(moment, now)} if moment else _("nothing yet")


@require_GET
@member("viewer")
def figures(request: MemberRequest) -> HttpResponse:
    """Explain every figure of the reports."""
    return render(request, "hub/figures.html", {"definitions": definitions()})
