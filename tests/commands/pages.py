"""A person's browser without a browser: signs in, and reads the ready commands of a page."""

import html
import http.cookiejar
import re
import urllib.parse
import urllib.request
from pathlib import Path

from tests.live import ROOT, Hub


class Reader:
    """The first admin, signed in at the hub."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        token = self._token(self.page("/login"))
        form = {"username": "admin", "password": "correct horse battery", "csrfmiddlewaretoken": token}
        self.opener.open(f"{hub.base}/login", urllib.parse.urlencode(form).encode(), timeout=60).read()

    def page(self, path: str) -> str:
        """Return the page as it was sent."""
        with self.opener.open(self.hub.base + path, timeout=60) as answer:
            return str(answer.read().decode())

    def commands(self, path: str) -> list[str]:
        """Return the blocks of the page that have a copy button."""
        return [html.unescape(found) for found in re.findall(r'<pre tabindex="0">(.*?)</pre>', self.page(path), re.S)]

    @staticmethod
    def _token(page: str) -> str:
        return re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]


def read_document(name: str, base: str) -> list[tuple[str, str]]:
    """Return (language, text) of a document's blocks, with the hub's own address in them."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", Path(ROOT, name).read_text(), re.S | re.M)
    return [(language, text.replace("http://127.0.0.1:8000", base)) for language, text in blocks]
