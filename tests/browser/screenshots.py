"""Pictures of every page over the demo's rows: `make screenshots`, or `python -m tests.browser.screenshots [FOLDER] [options]`.

Each page is taken in both languages, both themes, on a desk and on a phone, and an index.html beside them shows them all; look
at them before a release. `--only TEXT` narrows the paths, `--languages`, `--sizes` and `--themes` what is taken of each.
`--readme` takes the pictures of the README into docs/pictures instead.
"""

import argparse
import html
import re
import sys
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Error, Page

from tests.browser.chromium import find_chromium, launch, settle, sign_in
from tests.browser.hub import Hub, serve
from tests.browser.pages import list_paths

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "screenshots"
README_FOLDER = ROOT / "docs" / "pictures"
LANGUAGES = ("en", "zh-hans")
SIZES = {"desk": 1280, "phone": 360}
THEMES = ("light", "dark")
TALLEST = 3000  # a longer page repeats its rows; its picture would only be slow and small
PATIENCE_MILLISECONDS = 120_000
README_PAGES = {
    "memories": "/memories",
    "report": "/report?range=7d",
    "doctor": "/doctor",
    "session": "/sessions/review-4821-basket",
}


def take(browser: Browser, hub: Hub, folder: Path, asked: argparse.Namespace) -> list[str]:
    """Write the pictures and return their names; what could not be taken is named on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for language in asked.languages:
        for size in asked.sizes:
            context = sign_in(browser, hub, language=language, width=SIZES[size])
            for path in [path for path in list_paths(context, hub) if asked.only in path]:
                try:
                    names += _take_page(context, hub, path, folder, f"{language}-{size}", asked.themes)
                except Error as error:
                    sys.stderr.write(f"no picture of {path} ({language}, {size}): {error.message.splitlines()[0]}\n")
            context.close()
    _write_index(folder, names)
    return names


def _take_page(context: BrowserContext, hub: Hub, path: str, folder: Path, suffix: str, themes: list[str]) -> list[str]:
    names = []
    page = _open(context, hub, path)
    for theme in themes:
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        _repaint(page)
        width, height = page.evaluate("() => [innerWidth, document.documentElement.scrollHeight]")
        names.append(f"{_name(path)}-{suffix}-{theme}.png")
        page.screenshot(
            path=folder / names[-1],
            full_page=True,
            clip={"x": 0, "y": 0, "width": width, "height": min(height, TALLEST)},
            timeout=PATIENCE_MILLISECONDS,
        )
    page.close()
    return names


def take_for_readme(browser: Browser, hub: Hub, folder: Path) -> list[str]:
    """Write the README's pictures, what a desk shows without scrolling, in both themes; the demo's banner is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    context = sign_in(browser, hub, width=1280)
    page = _open(context, hub, "/memories?q=job+queue+is+healthy")
    storied = page.locator("a[data-open-row]").first.get_attribute("href") or ""
    page.close()
    for name, path in {**README_PAGES, "memory": storied}.items():
        page = _open(context, hub, path)
        page.locator("form[action$='remove_demo'], form[action*='demo']").first.evaluate(
            "form => form.closest('.mh-messages').remove()"
        )
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            _repaint(page)
            names.append(f"{name}-{theme}.png")
            page.screenshot(path=folder / names[-1], timeout=PATIENCE_MILLISECONDS)
        page.close()
    return names


def _open(context: BrowserContext, hub: Hub, path: str) -> Page:
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MILLISECONDS)
    page.goto(hub.base + path)
    settle(page)
    return page


def _repaint(page: Page) -> None:
    """Wait until the theme's change of colours is over everywhere, charts included."""
    page.wait_for_timeout(500)
    page.evaluate("() => Promise.all(document.getAnimations().map((one) => one.finished.catch(() => null)))")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_timeout(300)


def _write_index(folder: Path, names: list[str]) -> None:
    figures = "\n".join(
        f'<figure><img src="{html.escape(name)}" loading="lazy" alt=""><figcaption>{html.escape(name)}</figcaption></figure>'
        for name in sorted(names)
    )
    style = "body{display:flex;flex-wrap:wrap;gap:16px;font:13px system-ui}figure{margin:0}img{width:420px}"
    (folder / "index.html").write_text(f"<!doctype html><title>Pages</title><style>{style}</style>\n{figures}\n")


def _name(path: str) -> str:
    short = re.sub(r"(mem|chg|job)_\w+", r"\1", path.strip("/"))
    return re.sub(r"[^\w-]+", "-", short).strip("-") or "overview"


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of every page over the demo's rows.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=list(LANGUAGES))
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), default=list(SIZES))
    parser.add_argument("--themes", nargs="+", choices=THEMES, default=list(THEMES))
    parser.add_argument("--readme", action="store_true")
    asked = parser.parse_args()
    folder = asked.folder or (README_FOLDER if asked.readme else FOLDER)
    with serve() as hub, launch(find_chromium()) as browser:
        names = take_for_readme(browser, hub, folder) if asked.readme else take(browser, hub, folder, asked)
    sys.stdout.write(f"{len(names)} pictures in {folder}\n")


if __name__ == "__main__":
    main()
