"""Every page, in both languages, both themes, on a phone and on a desk: quiet, accessible, inside its frame, inside its origin."""

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser.chromium import settle, sign_in
from tests.browser.hub import Hub
from tests.browser.pages import list_paths

AA_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
AXE_OPTIONS = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": AA_TAGS}}
# The second theme changes colours and nothing else; a chart is a picture with its own table and summary.
COLOURS_ONLY = {
    "resultTypes": ["violations"],
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
WITHOUT_CHARTS = {"exclude": [["[data-figure]"]]}
# Text that is cut off: an element narrower than its text that hides the rest without saying so.
CLIPPED = """() => {
  const shown = 'main h1, main h2, main th, main td, main button, main .button, main .mh-chip, main label, main a';
  return [...document.querySelectorAll(shown)]
    .filter((e) => e.offsetParent && !e.closest('.mh-sr, .mh-clip, [data-figure], .mh-scroll'))
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'hidden')
    .filter((e) => getComputedStyle(e).textOverflow !== 'ellipsis')
    .map((e) => e.outerHTML.slice(0, 120));
}"""
# Colours on their way from one theme to the other are none that anybody reads.
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
AT_REST = "() => document.getAnimations().every((one) => one.playState !== 'running')"
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Witness:
    """Notes what a page should not do."""

    def __init__(self, page: Page, hub: Hub) -> None:
        self.complaints: list[str] = []
        self._hub = hub
        self.expected_status = 200
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"script error: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " (e) => console.error('CSP', e.violatedDirective, e.blockedURI, e.sourceFile))"
        )

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and "status of 404" not in message.text:
            self.complaints.append(f"console {message.type}: {message.text[:200]}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self._hub.base, "data:", "blob:")):
            self.complaints.append(f"a request left the origin: {request.url[:200]}")

    def _response(self, response: Any) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.status} from {response.url[:200]}")


def _violations(page: Page, options: dict[str, Any]) -> list[str]:
    found = Axe().run(page, context=WITHOUT_CHARTS, options=options).response["violations"]
    return [
        f"axe {violation['id']}: {node['target']} {(node['any'] or [{'message': node['html'][:120]}])[0]['message']}"
        for violation in found
        for node in violation["nodes"][:3]
    ]


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_is_clean(browser: Browser, live_hub: Hub, language: str, width: int) -> None:
    context = sign_in(browser, live_hub, language=language, width=width)
    complaints: list[str] = []

    for path in list_paths(context, live_hub):
        page = context.new_page()
        witness = Witness(page, live_hub)
        answer = page.goto(live_hub.base + path)
        settle(page)
        assert answer is not None
        found = list(witness.complaints)
        if answer.status != (404 if path == "/no-such-page" else 200):
            found.append(f"answered {answer.status}")
        overflow = page.evaluate(OVERFLOW)
        found += [f"{overflow} px wider than the screen"] if overflow > 0 else []
        found += [f"clipped: {html}" for html in page.evaluate(CLIPPED)]
        found += [f"light {violation}" for violation in _violations(page, AXE_OPTIONS)]
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(TWO_FRAMES)
        page.wait_for_function(AT_REST)
        found += [f"dark {violation}" for violation in _violations(page, COLOURS_ONLY)]
        complaints += [
            f"{path} [{language} {width}] {complaint}" for complaint in found + witness.complaints[len(found) :]
        ]
        page.close()
    context.close()

    assert complaints == [], "\n" + "\n".join(complaints)
