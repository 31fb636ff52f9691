"""What scripts add: the palette, keys, the theme at once, news that don't move the page, one sheet of paper."""

import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chromium import settle, sign_in
from tests.browser.hub import Hub


@pytest.fixture
def page(browser: Browser, live_hub: Hub) -> Iterator[Page]:
    context = sign_in(browser, live_hub)
    yield context.new_page()
    context.close()


def test_ctrl_k_jumps(page: Page, live_hub: Hub) -> None:
    page.goto(live_hub.base)
    page.keyboard.press("Control+k")
    page.keyboard.type("price")
    expect(page.locator("#palette [role=option][aria-selected=true]")).to_contain_text("Prices")
    page.keyboard.press("Enter")

    page.wait_for_url(f"{live_hub.base}/prices")


def test_a_question_mark_shows_the_keys_and_escape_closes_them(page: Page, live_hub: Hub) -> None:
    page.goto(live_hub.base)
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")

    expect(page.locator("#keys")).to_be_hidden()


def test_j_and_k_walk_the_rows_and_enter_opens_one(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/changes")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator("[data-rows] > tr").first).to_have_class(re.compile("is-current"))
    page.keyboard.press("Enter")

    page.wait_for_url(re.compile("/changes/chg_"))


def test_slash_goes_to_the_search_box_and_letters_stay_letters_there(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/memories")
    page.keyboard.press("/")
    page.keyboard.type("j?k")

    expect(page.locator("[data-search-box]")).to_have_value("j?k")


def test_the_theme_changes_at_once_and_is_kept(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/status")
    page.click("[data-theme-menu] summary")
    with page.expect_response("**/preferences"):
        page.click("[data-theme-menu] button[value=dark]")
    assert page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == "dark"
    page.reload()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"

    page.click("[data-theme-menu] summary")
    with page.expect_response("**/preferences"):
        page.click("[data-theme-menu] button[value=system]")


def test_news_are_announced_and_nothing_moves_until_asked(page: Page, live_hub: Hub) -> None:
    page.goto(live_hub.base)
    first = page.locator("#feed li").first.inner_text()
    other = page.context.new_page()
    other.goto(f"{live_hub.base}/memories/new")
    other.fill("[name=content]", f"News of this very minute, number {uuid.uuid4()}.")
    other.fill("[name=agent]", "ops")
    other.click("main form button.is-primary")
    other.wait_for_url("**/memories/mem_*")
    other.close()

    expect(page.locator("#feed-news")).to_contain_text("1 new, show", timeout=15_000)
    assert page.locator("#feed li").first.inner_text() == first
    page.click("#feed-news a")

    expect(page.locator("#feed li").first).not_to_have_text(first)


def test_the_report_fits_one_sheet_of_paper(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/report")
    settle(page)

    paper = page.pdf(format="A4", landscape=True, prefer_css_page_size=True)

    assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1
