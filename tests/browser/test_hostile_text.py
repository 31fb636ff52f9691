"""Texts that try to be scripts, in every field that agents and people write, looked at in a real browser."""

import json
import re
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page

from memoryhub.workspaces.principals import ALL_SCOPES
from tests.browser.chromium import settle, sign_in
from tests.browser.hub import Hub, serve
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


TYPED = ('"><img src=x onerror=alert(1)>', "</textarea></title><script>alert(1)</script>")
INJECTED = "main script:not([type='application/json']):not([src]), img[src=x], svg[onload]"


@pytest.fixture(scope="module")
def hostile_hub(browser: Browser) -> Iterator[Hub]:
    """A hub of its own, whose workspace an agent has filled; the one that the pages show."""
    with serve() as hub:
        made = hub.manage("create_api_key", "--workspace", "demo", "--name", CORPUS[1], "--scopes", *ALL_SCOPES)
        key = made.strip().splitlines()[-1]
        for number, text in enumerate(CORPUS):
            _write(hub, key, number, text)
        yield hub


def _write(hub: Hub, key: str, number: int, text: str) -> None:
    """Put a text into every field that the API takes one in."""
    sid = f"hostile-{number}"
    post(hub, key, "/memories", [_memory(text)])
    session = {"agent": text, "user": text, "project": text, "title": text}
    post(hub, key, f"/sessions/{sid}", session, method="PUT")
    event = {"id": f"e{number}", "kind": "message", "role": "user", "content": text}
    post(hub, key, f"/sessions/{sid}/events", [event])
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    record = {
        "message_id": sid,
        "model": text,
        "session": sid,
        "project": text,
        "agent": text,
        "user": text,
        "usage": usage,
    }
    post(hub, key, "/prompt-cache/usage", record)
    tool = f"hostile_{number}"
    post(hub, key, f"/tool-policies/{tool}", {"cacheable": True}, method="PUT")
    result = {
        "tool": tool,
        "params": {text: text},
        "value": text,
        "depends_on": [{"kind": "tag", "name": text}],
    }
    post(hub, key, f"/sessions/{sid}/tool-results", result, method="PUT")
    post(hub, key, "/invalidations", {"tool": "nothing", "reason": text})


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


class Watch:
    """What went wrong while pages were looked at: a dialog that opened, an element that a text became."""

    def __init__(self, context: BrowserContext) -> None:
        self.wrong: list[str] = []
        self._context = context

    def open(self, address: str) -> Page:
        page = self._context.new_page()
        page.on("dialog", self._dismiss)
        page.goto(address)
        settle(page)
        return page

    def look(self, page: Page, where: str) -> None:
        if page.locator(INJECTED).count():
            self.wrong.append(f"a text became an element: {where}")

    def _dismiss(self, dialog: Dialog) -> None:
        self.wrong.append(f"a dialog: {dialog.message} on {dialog.page.url if dialog.page else ''}")
        dialog.dismiss()


def look_everywhere(watch: Watch, context: BrowserContext, hub: Hub) -> None:
    own = ("/sessions/hostile-0", "/search?q=alert", "/memories?q=<script>alert(1)</script>", "/tool-cache?q=alert")
    for path in [*list_paths(context, hub), *own]:
        page = watch.open(hub.base + path)
        watch.look(page, path)
        page.close()


def test_no_text_of_an_agent_becomes_a_script_on_any_page(browser: Browser, hostile_hub: Hub) -> None:
    context = sign_in(browser, hostile_hub)
    watch = Watch(context)

    look_everywhere(watch, context, hostile_hub)
    page = watch.open(f"{hostile_hub.base}/memories")
    shown = page.locator("main").inner_text()
    context.close()

    assert watch.wrong == []
    assert all(text.splitlines()[0] in shown for text in CORPUS[:3])  # they are there, as texts


# Fills every field of a form that takes a text and sends it off; answers the names of the fields.
SUBMIT = """([index, text]) => {
  const form = document.forms[index];
  const takes = "textarea, input:not([type]), input[type=text], input[type=search], input[type=url], input[type=hidden][name=q]";
  const fields = [...form.querySelectorAll(takes)].filter((field) => !field.readOnly);
  fields.forEach((field) => { field.value = text; });
  form.noValidate = true;
  if (fields.length) form.requestSubmit();
  return fields.map((field) => field.name);
}"""
# Of each form its place and what it is: rows repeat the same one.
FORMS = """() => [...document.forms].map((form, index) => [
  index, form.method + " " + (form.getAttribute("hx-post") || form.getAttribute("action") || location.pathname)
])"""


def test_no_text_of_a_person_becomes_a_script_whatever_form_it_goes_through(browser: Browser, hostile_hub: Hub) -> None:
    context = sign_in(browser, hostile_hub)
    watch = Watch(context)
    tried: dict[str, list[str]] = {}
    for path in list_paths(context, hostile_hub):
        page = watch.open(hostile_hub.base + path)
        found = page.evaluate(FORMS)
        page.close()
        for index, form in found:
            kind = re.sub(r"\b(mem|rev|chg|job|whk)_\w+|\b\d+\b", "*", form.split("?")[0])
            if kind in tried or "/logout" in kind or "/password" in kind:
                continue
            for text in TYPED:
                page = watch.open(hostile_hub.base + path)
                tried[kind] = page.evaluate(SUBMIT, [index, text])
                if tried[kind]:
                    page.wait_for_timeout(300)
                    page.wait_for_load_state("load")
                    watch.look(page, kind)
                page.close()
    look_everywhere(watch, context, hostile_hub)
    context.close()

    assert watch.wrong == []
    assert sum(bool(fields) for fields in tried.values()) >= 20, tried
