"""The main paths with JavaScript off: the page is the product, scripts are a comfort."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import sign_in
from tests.browser.hub import Hub


@pytest.fixture
def page(browser: Browser, live_hub: Hub) -> Iterator[Page]:
    context = sign_in(browser, live_hub, scripts=False)
    yield context.new_page()
    context.close()


def test_a_memory_is_written_found_edited_and_forgotten(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/memories/new")
    page.fill("[name=content]", "The staging database is reset every Sunday night.")
    page.fill("[name=agent]", "ops")
    page.click("main form button.is-primary")
    expect(page.locator("main")).to_contain_text("The staging database is reset every Sunday night.")

    page.goto(f"{live_hub.base}/memories?q=staging+database")
    page.click("text=The staging database is reset")
    expect(page.locator("h1")).to_be_visible()


def test_the_language_is_switched_on_the_page_that_is_open(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/report?range=7d")
    page.click("summary[aria-label=Language]")
    page.click("button[value=zh-hans]")

    assert page.url == f"{live_hub.base}/report?range=7d"
    expect(page.locator("h1")).to_have_text("成本报告")
    page.click("summary[aria-label=语言]")
    page.click("button[name=language][value=en]")
    expect(page.locator("h1")).to_have_text("Cost report")


def test_the_report_is_read_and_grouped(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/report")
    page.click("#breakdown nav a:has-text('Project')")
    expect(page.locator("#breakdown thead th").first).to_have_text("Project")
    page.locator("details.mh-details summary").first.click()

    expect(page.locator("details.mh-details table").first).to_be_visible()


def test_a_key_is_made_and_revoked(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/settings/keys")
    page.fill("[name=name]", "no scripts")
    page.click("text=Create key")
    expect(page.locator(".mh-code pre").first).to_contain_text("mh_")

    page.locator("tr:has-text('no scripts') >> text=Revoke").click()
    page.click("main .button.is-danger")
    expect(page.locator("main")).to_contain_text("The key “no scripts” is revoked.")


def test_the_menu_of_a_phone_opens(browser: Browser, live_hub: Hub) -> None:
    context = sign_in(browser, live_hub, scripts=False, width=360)
    page = context.new_page()
    page.goto(live_hub.base)
    expect(page.locator("#menu")).to_be_hidden()

    page.click(".mh-top-burger")
    page.click("#menu >> text=Prices")

    assert page.url == f"{live_hub.base}/prices"
    context.close()
