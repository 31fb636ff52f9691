"""The catalogue of translations: `python -m tests.messages` finds every message of the code and the templates and brings the
catalogue up to date; `make messages` runs it. It needs no GNU gettext: Babel reads the code, Django's own lexer the templates.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import django
from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "memoryhub" / "locale" / "zh_Hans" / "LC_MESSAGES"
KEYWORDS: dict[str, tuple[int | tuple[int, str], ...] | None] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "now_gettext": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
_CALL = re.compile(r"\b(n?p?gettext)\(")
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Message:
    """A text as it stands in the source: its context, its singular, its plural where it has one, and where it was found."""

    context: str
    singular: str
    plural: str
    place: str

    @property
    def key(self) -> Key:
        return self.context, self.singular


def find_messages() -> dict[Key, Message]:
    """Return every message of the product by context and singular, in the order of the files."""
    found: dict[Key, Message] = {}
    for message in [*_in_code(), *_in_templates()]:
        known = found.get(message.key)
        if known is None or (message.plural and not known.plural):
            found[message.key] = message
    return found


def _in_code() -> Iterator[Message]:
    rows = extract_from_dir(str(ROOT / "memoryhub"), [("**.py", "python")], keywords=KEYWORDS, comment_tags=())  # type: ignore[arg-type]
    for filename, _line, text, _comments, context in rows:
        singular, plural = text if isinstance(text, tuple | list) else (text, "")
        yield Message(context or "", singular, plural, f"memoryhub/{filename}")
    yield from _in_f_strings()


def _in_f_strings() -> Iterator[Message]:
    """Return the messages inside f-strings, which Babel does not look into before Python 3.12."""
    for path in sorted((ROOT / "memoryhub").rglob("*.py")):
        inside = (
            part
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.JoinedStr)
            for part in ast.walk(node)
        )
        for call in inside:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KEYWORDS:
                texts = [str(argument.value) for argument in call.args if isinstance(argument, ast.Constant)]
                context = texts.pop(0) if "p" in call.func.id.removeprefix("n").split("gettext")[0] else ""
                if texts:
                    yield Message(
                        context, texts[0], texts[1] if call.func.id.startswith("n") else "", str(path.relative_to(ROOT))
                    )


def _in_templates() -> Iterator[Message]:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        place = str(path.relative_to(ROOT))
        source = templatize(path.read_text(), origin=place)
        for call in _CALL.finditer(source):
            texts = _arguments(source, call.end() - 1)
            context = texts.pop(0) if "p" in call[1].removesuffix("gettext") else ""
            yield Message(context, texts[0], texts[1] if call[1].startswith("n") else "", place)


def _arguments(source: str, opening: int) -> list[str]:
    """Return the texts of a call; the count of a plural is no text and is left out."""
    depth, quote, at = 0, "", opening
    while True:
        character = source[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character == "(") - (character == ")")
            if depth == 0:
                break
        at += 1
    call = ast.parse(f"f{source[opening : at + 1]}", mode="eval").body
    assert isinstance(call, ast.Call)
    return [
        argument.value
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def read_catalogue() -> Catalog:
    """Return the translations as they are."""
    path = FOLDER / "django.po"
    if not path.exists():
        return Catalog(locale="zh_Hans")
    with path.open("rb") as file:
        return read_po(file, locale="zh_Hans")


def update_catalogue() -> Catalog:
    """Write the catalogue with every message of the source, the known translations kept, what is gone removed."""
    known, found = read_catalogue(), find_messages()
    fixed = datetime(2026, 1, 1, tzinfo=UTC)  # the file changes when a message does, and not with the clock
    fresh = Catalog(
        locale="zh_Hans", project="MemoryHub", charset="utf-8", fuzzy=False, creation_date=fixed, revision_date=fixed,
        msgid_bugs_address="", last_translator="MemoryHub", language_team="MemoryHub", version="",
        header_comment="# Simplified Chinese texts of MemoryHub.",
    )  # fmt: skip
    for message in sorted(found.values(), key=lambda m: (m.place, m.singular, m.context)):
        before = known.get(message.singular, context=message.context or None)
        text = before.string if before else ""
        if message.plural:
            forms = text if isinstance(text, tuple | list) else (text,)
            fresh.add(
                (message.singular, message.plural),
                tuple(forms)[:1],
                context=message.context or None,
                locations=[(message.place, None)],
            )  # type: ignore[list-item]
        else:
            fresh.add(
                message.singular,
                text if isinstance(text, str) else text[0],
                context=message.context or None,
                locations=[(message.place, None)],
            )  # type: ignore[list-item]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "django.po").open("wb") as file:
        write_po(file, fresh, width=120, include_lineno=False, omit_header=False)
    with (FOLDER / "django.mo").open("wb") as file:
        write_mo(file, fresh)
    return fresh


def untranslated(catalogue: Catalog) -> list[str]:
    """Return the messages that have no translation."""
    return [str(message.id) for message in catalogue if message.id and not all(_forms(message.string))]


def _forms(text: object) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, tuple | list) else (str(text or ""),)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()
    missing = untranslated(update_catalogue())
    sys.stdout.write(f"{len(missing)} messages lack a translation\n" + "".join(f"  {text}\n" for text in missing[:200]))
    sys.exit(1 if missing else 0)
