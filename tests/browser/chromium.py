"""Debian's Chromium, driven by playwright; missing, it skips the tests here and fails them under CI."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.hub import ADMIN_PASSWORD, Hub

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str:
    """Return the browser's path; where there is none, skip, or fail under CI."""
    path = os.environ.get("MEMORYHUB_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path:
        return path
    if os.environ.get("CI"):
        pytest.fail("Chromium is missing; install it with `apt-get install chromium`.")
    pytest.skip("Chromium is missing; install it with `apt-get install chromium`.")


@contextmanager
def launch(path: str) -> Iterator[Browser]:
    """Start a browser with a fresh profile and end it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def sign_in(
    browser: Browser,
    hub: Hub,
    *,
    name: str = "admin",
    password: str = ADMIN_PASSWORD,
    language: str = "en",
    width: int = 1280,
    scripts: bool = True,
) -> BrowserContext:
    """Return a context of a signed-in person who reads this language on a screen of this width."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        timezone_id="Asia/Shanghai",
        locale="en-US",
        java_script_enabled=scripts,
        reduced_motion="reduce",
        color_scheme="light",
    )
    page = context.new_page()
    page.goto(f"{hub.base}/login")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", password)
    page.click("form.mh-form button")
    token = next(cookie["value"] for cookie in context.cookies() if cookie["name"] == "memoryhub_csrf")
    context.request.post(
        f"{hub.base}/preferences",
        form={"language": language, "theme": "system", "csrfmiddlewaretoken": token},
        headers={"Referer": hub.base},
    )
    page.close()
    return context


def settle(page: Page) -> None:
    """Wait until scripts have drawn what they draw at the start."""
    page.wait_for_load_state("load")
    page.wait_for_function(
        "() => [...document.querySelectorAll('[data-figure]')].every((place) => place.querySelector('.main-svg'))"
    )
