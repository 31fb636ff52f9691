"""Pictures of every page over the demo's rows: `python -m tests.browser.screenshots [FOLDER]`.

Each page is taken in both languages, both themes, on a desk and on a phone; look at them before a release.
"""

import re
import sys
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.chromium import find_chromium, launch, settle, sign_in
from tests.browser.hub import Hub, serve
from tests.browser.pages import list_paths

FOLDER = Path(__file__).parent / "output"
SIZES = {"desk": 1440, "phone": 360}


def take(browser: Browser, hub: Hub, folder: Path, *, only: str = "") -> int:
    """Write the pictures and return how many; `only` narrows the paths by a part of their text."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for language in ("en", "zh-hans"):
        for size, width in SIZES.items():
            context = sign_in(browser, hub, language=language, width=width)
            for path in [path for path in list_paths(context, hub) if only in path]:
                page = context.new_page()
                page.goto(hub.base + path)
                settle(page)
                for theme in ("light", "dark"):
                    page.emulate_media(color_scheme=theme)
                    page.wait_for_timeout(300)
                    page.screenshot(path=folder / f"{_name(path)}-{language}-{size}-{theme}.png", full_page=True)
                    count += 1
                page.close()
            context.close()
    return count


def _name(path: str) -> str:
    short = re.sub(r"(mem|chg|job)_\w+", r"\1", path.strip("/"))
    return re.sub(r"[^\w-]+", "-", short).strip("-") or "overview"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with serve() as hub, launch(find_chromium()) as browser:
        sys.stdout.write(f"{take(browser, hub, folder)} pictures in {folder}\n")


if __name__ == "__main__":
    main()
