"""A viewer sees everything and can change nothing: no page offers it, and what is sent by hand is refused."""

import re

from playwright.sync_api import Browser

from tests.browser.chromium import sign_in
from tests.browser.hub import VIEWER_PASSWORD, Hub
from tests.browser.pages import list_paths

# A person's own things, and questions that need a body: language, theme, password; a request to diagnose or to plan.
OWN = re.compile(r"/(preferences|account|logout|workspace|doctor/check|planner/plan)\b")
# Pages that are only a form: a viewer is not let in.
FORMS_ALONE = (
    "/memories/new",
    "/report/import",
    "/settings/members",
    "/settings/keys",
    "/settings/guards",
    "/settings/webhooks",
)
CHANGES = """() => [...document.querySelectorAll('main form[method=post], main [hx-post], main [hx-delete], main [hx-put]')]
  .map((e) => e.getAttribute('action') || e.getAttribute('hx-post') || '?')"""
EDITS = "() => [...document.querySelectorAll('main [data-key], main [data-page-key], main [data-pick]')].map((e) => e.outerHTML.slice(0, 80))"


def test_no_page_offers_a_viewer_to_change_anything(browser: Browser, live_hub: Hub) -> None:
    context = sign_in(browser, live_hub, name="mia", password=VIEWER_PASSWORD)
    page = context.new_page()
    complaints = []

    for path in list_paths(context, live_hub):
        answer = page.goto(live_hub.base + path)
        assert answer is not None
        if answer.status == 403:
            assert path in FORMS_ALONE, path
            continue
        offered = [action for action in page.evaluate(CHANGES) if not OWN.search(action)]
        complaints += [f"{path} offers {one}" for one in offered + page.evaluate(EDITS)]
        links = page.eval_on_selector_all("main a[href]", "links => links.map((link) => link.getAttribute('href'))")
        complaints += [f"{path} links to {link}" for link in links if link.split("?")[0] in FORMS_ALONE]
    context.close()

    assert complaints == []


def test_what_a_viewer_sends_by_hand_is_refused(browser: Browser, live_hub: Hub) -> None:
    context = sign_in(browser, live_hub, name="mia", password=VIEWER_PASSWORD)
    page = context.new_page()
    page.goto(f"{live_hub.base}/memories")
    memory = page.locator("a[data-open-row]").first.get_attribute("href")
    token = next(cookie["value"] for cookie in context.cookies() if cookie["name"] == "memoryhub_csrf")

    for path in (f"{memory}/edit", f"{memory}/erase", "/memories/new", "/jobs/run", "/invalidate/run", "/demo/remove"):
        answer = context.request.post(
            live_hub.base + path,
            form={"csrfmiddlewaretoken": token, "importance": "1"},
            headers={"Referer": live_hub.base},
        )
        assert answer.status == 403, path
    context.close()
