"""Steering memories by keys and pointer: importance, tags, text, two editors at once, many rows, filters, the curve, review."""

import re
import uuid
from collections.abc import Iterator
from decimal import Decimal

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.chromium import settle, sign_in
from tests.browser.hub import Hub


@pytest.fixture
def page(browser: Browser, live_hub: Hub) -> Iterator[Page]:
    context = sign_in(browser, live_hub)
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


@pytest.fixture
def word(page: Page, live_hub: Hub) -> str:
    """A word that only one new memory holds."""
    word = f"quince{uuid.uuid4().hex[:8]}"
    remember(page, live_hub, f"The {word} ripens in October.")
    return word


def remember(page: Page, hub: Hub, text: str) -> None:
    page.goto(f"{hub.base}/memories/new")
    page.fill("[name=content]", text)
    page.fill("[name=agent]", "gardener")
    page.click("main form button.is-primary")
    expect(page.locator("h1")).to_be_visible()


def row_of(page: Page, hub: Hub, word: str) -> Locator:
    page.goto(f"{hub.base}/memories?agent=gardener")
    return page.locator("tr", has_text=word)


def make_current(page: Page, row: Locator) -> None:
    for _ in range(40):
        page.keyboard.press("j")
        if "is-current" in (row.get_attribute("class") or ""):
            return
    raise AssertionError("j never came to the row")


def test_plus_and_minus_change_the_importance_of_the_current_row_and_stay_there(
    page: Page, live_hub: Hub, word: str
) -> None:
    row = row_of(page, live_hub, word)
    before = Decimal(row.locator(".mem-figure").inner_text())
    make_current(page, row)

    for key, change in (("+", "0.1"), ("+", "0.2"), ("-", "0.1")):
        page.keyboard.press(key)
        expect(row.locator(".mem-figure")).to_have_text(f"{before + Decimal(change):.2f}")
        expect(row).to_have_class(re.compile("is-current"))
    page.reload()
    expect(row.locator(".mem-figure")).to_have_text(f"{before + Decimal('0.1'):.2f}")


def test_the_slider_saves_what_an_arrow_key_sets(page: Page, live_hub: Hub, word: str) -> None:
    row = row_of(page, live_hub, word)
    row.locator("input[type=range]").focus()
    with page.expect_response(re.compile("/edit")):
        page.keyboard.press("ArrowRight")

    expect(row.locator(".mem-figure")).to_have_text("0.55")
    page.reload()
    expect(row.locator(".mem-figure")).to_have_text("0.55")


def test_a_tag_is_added_with_enter_removed_by_its_cross_and_filters_by_a_click(
    page: Page, live_hub: Hub, word: str
) -> None:
    row = row_of(page, live_hub, word)
    row.locator(".mem-add summary").click()
    expect(row.locator("[name=add_tag]")).to_be_focused()
    page.keyboard.type("orchard")
    page.keyboard.press("Enter")
    expect(row.locator(".mem-tags a", has_text="orchard")).to_be_visible()

    row.locator(".mem-tags a", has_text="orchard").click()
    page.wait_for_url(re.compile("tag=orchard"))
    row.locator("button.mem-x").click()
    expect(row.locator(".mem-tags a", has_text="orchard")).to_have_count(0)


def test_the_text_is_edited_in_place_and_undone_by_the_toast(page: Page, live_hub: Hub, word: str) -> None:
    row = row_of(page, live_hub, word)
    make_current(page, row)
    page.keyboard.press("e")
    expect(row.locator("textarea")).to_be_focused()
    row.locator("textarea").fill(f"The {word} ripens in November.")
    page.keyboard.press("Control+Enter")

    expect(row.locator(".mem-text")).to_contain_text("November")
    page.locator("#toasts button", has_text="Undo").click()
    expect(page.locator("tr", has_text=word).locator(".mem-text")).to_contain_text("October")


def test_escape_leaves_the_text_as_it_was(page: Page, live_hub: Hub, word: str) -> None:
    row = row_of(page, live_hub, word)
    make_current(page, row)
    page.keyboard.press("e")
    row.locator("textarea").fill("Something else.")
    page.keyboard.press("Escape")

    expect(row.locator(".mem-text")).to_contain_text("October")


def test_two_editors_see_both_versions_and_nothing_is_overwritten(page: Page, live_hub: Hub, word: str) -> None:
    row = row_of(page, live_hub, word)
    row.locator(".mem-pen").click()
    row.locator("textarea").fill(f"The {word} ripens in my garden.")
    other = page.context.new_page()
    theirs = row_of(other, live_hub, word)
    theirs.locator(".mem-pen").click()
    theirs.locator("textarea").fill(f"The {word} ripens in their garden.")
    theirs.locator("button.is-primary").click()
    expect(theirs.locator(".mem-text")).to_contain_text("their garden")
    other.close()

    row.locator("button.is-primary").click()

    conflict = page.locator(".mem-versus")
    expect(conflict).to_contain_text("my garden")
    expect(conflict).to_contain_text("their garden")
    page.goto(f"{live_hub.base}/memories?agent=gardener")
    expect(page.locator("tr", has_text=word).locator(".mem-text")).to_contain_text("their garden")


def test_many_rows_are_previewed_changed_and_undone(page: Page, live_hub: Hub, word: str) -> None:
    remember(page, live_hub, f"A second {word} is quite another thing.")
    page.goto(f"{live_hub.base}/memories?q={word}")
    picks = page.locator("[data-pick]")
    expect(picks).to_have_count(2)
    page.locator("[data-check-all]").check()
    expect(page.locator("[data-picked]")).to_have_text("2 selected")
    page.select_option("#bulk-action", label="Add a tag")
    page.fill("#bulk-value", "harvest")
    page.click("#bulk button")

    expect(page.locator("main")).to_contain_text("2 memories")
    page.locator("main .mh-card form[method=post] button").first.click()
    expect(page.locator("main")).to_contain_text("Changed 2 memories.")
    with page.expect_navigation():
        page.locator("button", has_text="Undo").click()
    page.goto(f"{live_hub.base}/memories?q={word}")
    expect(page.locator(".mem-tags a", has_text="harvest")).to_have_count(0)


def test_a_filter_is_saved_used_and_removed(page: Page, live_hub: Hub, word: str) -> None:
    page.goto(f"{live_hub.base}/memories?agent=gardener")
    page.locator("summary", has_text="Saved filters").click()
    page.fill("#filter-name", f"the {word}")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.goto(f"{live_hub.base}/memories")
    page.locator("summary", has_text="Saved filters").click()
    page.locator(".mem-saved a", has_text=word).click()

    page.wait_for_url(re.compile("agent=gardener"))
    page.locator("summary", has_text="Saved filters").click()
    page.locator(".mem-saved", has_text=word).locator("button").click()
    expect(page.locator("main")).to_contain_text("Removed the filter")
    page.locator("summary", has_text="Saved filters").click()
    expect(page.locator(".mem-saved", has_text=word)).to_have_count(0)


def test_versions_show_which_words_changed(page: Page, live_hub: Hub, word: str) -> None:
    row_of(page, live_hub, word).locator(".mem-text").click()
    expect(page.locator("h1")).to_have_text("Memory")
    page.keyboard.press("e")
    page.fill("textarea[name=content]", f"The {word} ripens in December.")
    page.locator("main form button.is-primary").first.click()

    newest = page.locator(".mem-version").first
    expect(newest.locator("del")).to_have_text("October")
    expect(newest.locator("ins")).to_have_text("December")


def test_the_curve_follows_the_slider_and_only_save_keeps_it(page: Page, live_hub: Hub, word: str) -> None:
    row_of(page, live_hub, word).locator(".mem-text").click()
    settle(page)
    page.locator("#importance").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#curve-facts")).to_contain_text("importance 0.70; not saved")
    page.reload()
    expect(page.locator("#importance")).to_have_value("0.5")

    page.locator("#importance").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.locator("button[form=save-importance]").click()
    expect(page.locator("#importance")).to_have_value("0.7")


def test_the_bench_says_why_a_memory_is_not_found(page: Page, live_hub: Hub, word: str) -> None:
    row_of(page, live_hub, word).locator(".mem-text").click()
    memory = page.url.rsplit("/", 1)[1]
    page.goto(f"{live_hub.base}/search?q=deploy&agent=ops")
    page.fill("#why", memory)
    page.keyboard.press("Enter")

    expect(page.locator("#why-title")).to_have_text("Why not this one?")
    expect(page.locator("section", has=page.locator("#why-title"))).to_contain_text(word)


def test_the_review_inbox_is_worked_off_by_keys(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/review?kind=fading")
    questions = page.locator("[data-review]")
    before = questions.count()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(questions.first).to_have_class(re.compile("is-current"))
    first, second = (questions.nth(n).get_attribute("id") for n in (0, 1))
    page.keyboard.press("x")

    expect(page.locator(f"#{second}")).to_have_class(re.compile("is-current"))
    expect(page.locator(f"#{first}[data-review]")).to_have_count(0)
    page.keyboard.press("a")
    expect(page.locator(f"#{second}[data-review]")).to_have_count(0)
    page.reload()
    expect(questions).to_have_count(before - 2)


def test_a_session_is_walked_and_its_rewind_and_fork_shown_before_they_happen(page: Page, live_hub: Hub) -> None:
    page.goto(f"{live_hub.base}/sessions/review-4821-basket")
    for _ in range(4):
        page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#window-title")).to_have_text("Context window at the chosen event")
    page.locator("a", has_text="Rewind to here").click()
    expect(page.locator("main .mh-card form[method=post] button")).to_be_visible()
    page.locator("main a", has_text="Cancel").click()
    page.locator("a", has_text="Fork from here").click()
    expect(page.locator("main .mh-card form[method=post] button")).to_be_visible()
