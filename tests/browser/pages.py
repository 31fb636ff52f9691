"""Every page that a member can look at; those of one row are found by the first link of their list."""

from playwright.sync_api import BrowserContext

from tests.browser.hub import Hub

PATHS = (
    "/",
    "/report",
    "/report/import",
    "/requests",
    "/doctor",
    "/planner",
    "/prices",
    "/sessions",
    "/tool-cache",
    "/invalidate",
    "/memories",
    "/memories/new",
    "/search",
    "/search?q=deploy",
    "/review",
    "/changes",
    "/jobs",
    "/settings",
    "/settings/members",
    "/settings/keys",
    "/settings/decay",
    "/settings/guards",
    "/settings/webhooks",
    "/status",
    "/account",
    "/connect",
    "/figures",
    "/no-such-page",
)
# (list, selector of the first row's link)
OF_ONE_ROW = (
    ("/memories", "a[data-open-row]"),
    ("/sessions", "a[data-open-row]"),
    ("/requests", "a[data-open-row]"),
    ("/changes", "a[data-open-row]"),
    ("/jobs", "a[data-open-row]"),
    ("/settings/webhooks", "a[data-open-row]"),
)


def list_paths(context: BrowserContext, hub: Hub) -> list[str]:
    """Return the paths of all pages, those of single rows included."""
    page = context.new_page()
    found = list(PATHS)
    for path, selector in OF_ONE_ROW:
        page.goto(hub.base + path)
        link = page.locator(selector).first
        if link.count():
            found.append(str(link.get_attribute("href")))
    page.close()
    return found
