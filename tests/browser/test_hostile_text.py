"""Texts that try to be scripts, in every field that agents and people write, looked at in a real browser."""

import json
import urllib.request

import pytest
from playwright.sync_api import Browser, Dialog

from tests.browser.chromium import settle, sign_in
from tests.browser.hub import Hub
from tests.browser.pages import list_paths

CORPUS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</script><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "{{7*7}}${7*7}<%= 7*7 %>",
    "javascript:alert(1)",
    "]]><!--<img src=x onerror=alert(1)>-->",
    "</textarea><script>alert(1)</script>",
    "\u2028alert(1)\u2029<b onmouseover=alert(1)>",
)


@pytest.fixture(scope="module")
def hostile_hub(live_hub: Hub) -> Hub:
    key = live_hub.manage("create_api_key", "--workspace", "default", "--name", CORPUS[1]).strip().splitlines()[-1]
    post(live_hub, key, "/memories", [_memory(text) for text in CORPUS])
    for number, text in enumerate(CORPUS):
        session = {"agent": text, "user": text, "project": text, "title": text}
        post(live_hub, key, f"/sessions/hostile-{number}", session, method="PUT")
        event = {"id": f"e{number}", "kind": "message", "role": "user", "content": text}
        post(live_hub, key, f"/sessions/hostile-{number}/events", [event])
        usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        record = {
            "message_id": f"hostile-{number}",
            "model": text,
            "session": f"hostile-{number}",
            "project": text,
            "usage": usage,
        }
        post(live_hub, key, "/prompt-cache/usage", record)
    return live_hub


def _memory(text: str) -> dict[str, object]:
    return {
        "content": text,
        "scope": {"agent": text, "user": text, "project": text},
        "tags": [text[:60]],
        "subject": text[:100],
    }


def post(hub: Hub, key: str, path: str, body: object, method: str = "POST") -> None:
    """Write through the API as an agent does."""
    request = urllib.request.Request(
        f"{hub.base}/api/v1{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.status < 300


def test_no_text_becomes_a_script_on_any_page(browser: Browser, hostile_hub: Hub) -> None:
    context = sign_in(browser, hostile_hub)
    opened: list[str] = []

    def note(dialog: Dialog) -> None:
        opened.append(dialog.message)
        dialog.dismiss()

    for path in [
        *list_paths(context, hostile_hub),
        "/sessions/hostile-0",
        "/search?q=alert",
        "/memories?q=<script>alert(1)</script>",
    ]:
        page = context.new_page()
        page.on("dialog", note)
        page.goto(hostile_hub.base + path)
        settle(page)
        injected = page.locator(
            "main script:not([type='application/json']):not([src]), main img[src=x], main svg[onload]"
        ).count()
        assert injected == 0, path
        page.close()
    context.close()

    assert opened == []
