"""Every text of the product has its Chinese, and no page shows a text that never went through a translation."""

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern
from django.utils import translation
from django.utils.translation import trans_real

from memoryhub.audit.models import ChangeSet
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.services import MemoryDraft, Writer, remember
from memoryhub.web import urls
from memoryhub.work.models import Job
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal
from memoryhub.workspaces.services import create_api_key
from tests import messages
from tests.web.test_report import make_usage

CATALOGUE = messages.read_catalogue()
FOUND = messages.find_messages()
# Names, code and units that are the same in every language.
SAME_EVERYWHERE = re.compile(
    r"MemoryHub|API|CSV|JSON|curl|MCP|Claude|Anthropic|SDK|Ctrl K|Ctrl|Enter|Esc|English|简体中文|UTC"
    r"|[A-Z][a-z]+/[A-Z]\w+|Django|SQLite|PostgreSQL"
    r"|(mem|job|chg|rcp)_\w{26}|mh_\S*|pb_\w+|MEMORYHUB_\w+|https?://\S+|claude-\S+|\S+-of-home|home|elsewhere|viewer|admin|normal|local|none|json|jsonl"
)
TEXT_ATTRIBUTES = ("title", "aria-label", "placeholder", "alt", "data-label")


def test_the_catalogue_holds_every_message_of_the_source() -> None:
    known = {
        (message.context or "", message.id[0] if isinstance(message.id, tuple) else message.id) for message in CATALOGUE
    }

    missing = sorted(f"{message.place}: {message.singular}" for key, message in FOUND.items() if key not in known)

    assert missing == [], "run `make messages`"


def test_every_message_has_its_chinese() -> None:
    assert messages.untranslated(CATALOGUE) == []


def test_the_catalogue_holds_nothing_that_is_gone() -> None:
    keys = set(FOUND)

    gone = [
        message.id for message in CATALOGUE if message.id and (message.context or "", _singular(message.id)) not in keys
    ]

    assert gone == [], "run `make messages`"


def _singular(text: Any) -> str:
    return text[0] if isinstance(text, tuple | list) else text


def _placeholders(text: str) -> set[str]:
    return set(re.findall(r"%\(\w+\)[sd]", text))


def test_translations_keep_their_placeholders_and_links() -> None:
    wrong = []
    for message in CATALOGUE:
        for translated in messages._forms(message.string):
            sources = message.id if isinstance(message.id, tuple) else (message.id,)
            expected = [(_placeholders(text), re.findall(r"<[^>]+>", text)) for text in sources]
            if message.id and (_placeholders(translated), re.findall(r"<[^>]+>", translated)) not in expected:
                wrong.append(str(message.id))

    assert wrong == []


def test_the_compiled_catalogue_is_the_written_one() -> None:
    compiled = trans_real.DjangoTranslation("zh-hans")

    stale = []
    for message in CATALOGUE:
        if not message.id or message.context or isinstance(message.id, tuple):
            continue
        if message.string and compiled.gettext(message.id) != message.string:
            stale.append(message.id)

    assert stale == [], "run `make messages`"


class _Texts(HTMLParser):
    """Collects what a person reads or hears: the running text, and each attribute that is spoken."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[str] = []
        self.spoken: list[str] = []
        self._skipped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "pre", "code", "kbd", "option", "textarea"):
            self._skipped.append(tag)
        self.spoken += [value for name, value in attrs if name in TEXT_ATTRIBUTES and value]

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and self._skipped[-1] == tag:
            self._skipped.pop()

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.running.append(data)


def _bare(text: str) -> list[str]:
    """Return the lines that stand outside of every pair of brackets, names and code left out."""
    before = ""
    while before != text:
        before, text = text, re.sub(r"⟦[^⟦⟧]*⟧", "", text)
    lines = (SAME_EVERYWHERE.sub("", line).strip() for line in text.splitlines())
    return [line[:120] for line in lines if re.search(r"[A-Za-z]{3,}", line)]


@pytest.fixture
def pseudo_locale(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every translated text comes out in brackets; what has none was never translated."""

    def wrap(name: str, choose: Callable[..., str]) -> None:
        def marked(*texts: Any) -> str:
            text = choose(*texts)
            return f"⟦{text}⟧" if text.strip() else text

        monkeypatch.setattr(translation._trans, name, marked, raising=False)  # type: ignore[attr-defined]

    wrap("gettext", lambda text: text)
    wrap("pgettext", lambda context, text: text)
    wrap("ngettext", lambda one, many, count: one if count == 1 else many)
    wrap("npgettext", lambda context, one, many, count: one if count == 1 else many)
    monkeypatch.setattr("memoryhub.web.formats.date_format", lambda *_args: "⟦day⟧")
    with translation.override("en"):
        yield


@pytest.fixture
def rows_of_every_kind(workspace: Workspace, owner: Principal) -> list[str]:
    """Fill the workspace with rows whose own texts hold no English, and return the pages of single rows."""
    make_usage(workspace, 27, session="17", project="/42", agent="助手", user="李明")
    make_usage(workspace, 26, session="17", project="/42", model="claude-0")
    draft = MemoryDraft(
        content="用户偏好深色主题。", scope=ScopeNames(agent="助手", user="李明"), tags=("偏好",), importance=0.6
    )
    remember(writer=Writer.of(owner, door="mcp"), drafts=[draft])
    job = enqueue_job(workspace=workspace, kind="decay")
    Job.objects.update(state="dead", error="——")
    create_api_key(workspace=workspace, name="钥匙", scopes=["memories:read"])
    change_set, memory = ChangeSet.objects.latest("id"), Memory.objects.get()
    return [
        f"/memories/{memory.public_id}",
        f"/changes/{change_set.public_id}",
        f"/jobs/{job.public_id}",
        "/sessions/17",
    ]


def _plain_pages() -> list[str]:
    patterns = [pattern for pattern in urls.urlpatterns if isinstance(pattern, URLPattern)]
    return [f"/{pattern.pattern}" for pattern in patterns if "<" not in str(pattern.pattern)]


def _complaints(client: Client, path: str) -> list[str]:
    answer = client.get(path)
    if answer.status_code != 200 or "text/html" not in answer["Content-Type"]:
        return []
    reader = _Texts()
    reader.feed(answer.content.decode())
    return _bare("\n".join(reader.running)) + [line for text in reader.spoken for line in _bare(text)]


@pytest.mark.parametrize("path", _plain_pages())
def test_no_empty_page_shows_a_text_that_was_never_translated(admin: Client, pseudo_locale: None, path: str) -> None:
    assert _complaints(admin, path) == []


def test_no_filled_page_shows_a_text_that_was_never_translated(
    admin: Client, rows_of_every_kind: list[str], pseudo_locale: None
) -> None:
    found = {path: _complaints(admin, path) for path in [*_plain_pages(), *rows_of_every_kind]}

    assert {path: lines for path, lines in found.items() if lines} == {}
