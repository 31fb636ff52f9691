"""What kind of text changes from request to request: clocks, ids, paths, counters."""

import re
from bisect import bisect_right
from dataclasses import dataclass

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*"
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s?[ap]\.?m\.?)?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_ZONE = r"(?:\s?(?:z|utc|gmt|[+-]\d{2}:?\d{2}))?"
TIMESTAMP = re.compile(
    rf"(?<![A-Za-z0-9_.-])(?:"
    rf"\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?:[t ,]{{1,2}}{_CLOCK}{_ZONE})?"
    rf"|(?:{_WEEKDAY},?\s+)?(?:{_MONTH}\.?\s+{_DAY}|{_DAY}\s+{_MONTH}\.?)(?:,?\s+\d{{4}})?"
    rf"(?:[t ,]+(?:at\s+)?{_CLOCK}{_ZONE})?"
    rf"|\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}}"
    rf"|\d{{4}}年\d{{1,2}}月\d{{1,2}}日(?:\s*{_CLOCK})?"
    rf"|{_CLOCK}{_ZONE}"
    rf"|1[5-9]\d{{8}}(?:\d{{3}}|\d{{6}}|\d{{9}})?(?:\.\d+)?"
    rf"|{_WEEKDAY}"
    rf"|\d{{8}}t\d{{6}}z?"
    rf")(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)
UUID = re.compile(
    r"(?<![0-9a-zA-Z])(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{16,64}"
    r"|[0-9A-HJKMNP-TV-Z]{26}|[a-z]{2,12}_(?=[A-Za-z]*\d)[0-9A-Za-z]{12,64})(?![0-9a-zA-Z])",
    re.IGNORECASE,
)
PATH = re.compile(
    r"(?:~|\.{1,2}|[a-z]:|(?<![\w:/]))?(?:[/\\][\w.@+~-]+){2,}[/\\]?|[a-z]:\\[\w.@+~ -]+|~/[\w.@+~-]+|/[\w.@+~-]{2,}",
    re.IGNORECASE,
)
NUMBER = re.compile(r"[-+]?\d+(?:[.,_]\d+)*")
_COUNTER_WORD = re.compile(
    r"(?:turns?|steps?|count(?:er)?|requests?|attempts?|iterations?|sequence|seq|calls?|runs?|round|visits?|messages?|build|revision|nonce|number|no\.|nr\.?|#|第)"
    r"[\s:=#\"'(\[-]*(?:(?:is|was|no\.?|number|id)[\s:=#\"'(\[-]*)?$",
    re.IGNORECASE,
)
_WINDOW = 160  # characters looked at on each side of the first difference
_LONGEST_INSERTION = 80  # characters; what is longer is text, whatever it contains


def classify_change(before: str, after: str, offset: int) -> str:
    """Return what the differing text is: timestamp, uuid, path, counter, number or text."""
    old, new = _window(before, offset), _window(after, offset)
    for kind, pattern in (("uuid", UUID), ("timestamp", TIMESTAMP), ("path", PATH)):
        if _covering(pattern, *old) and _covering(pattern, *new):
            return kind
    old_number, new_number = _covering(NUMBER, *old), _covering(NUMBER, *new)
    if old_number and new_number:
        return "counter" if _is_counter(old_number, new_number, old[0]) else "number"
    return _kind_of_insertion(before, after, offset)


def _kind_of_insertion(before: str, after: str, offset: int) -> str:
    """Return what was put into the text or taken out of it, where that is short and nothing else changed."""
    short, long = sorted((before, after), key=len)
    inserted = long[offset : offset + len(long) - len(short)]
    if len(inserted) > _LONGEST_INSERTION or short[offset:] != long[offset + len(inserted) :]:
        return "text"
    found = find_volatile(inserted)
    return found.kind if found else "text"


def _window(text: str, offset: int) -> tuple[str, int]:
    start = max(0, offset - _WINDOW)
    return text[start : offset + _WINDOW], offset - start


def _covering(pattern: re.Pattern[str], text: str, offset: int) -> re.Match[str] | None:
    for match in pattern.finditer(text):
        if match.start() <= offset <= match.end():
            return match
        if match.start() > offset:
            return None
    return None


def _is_counter(old: re.Match[str], new: re.Match[str], text: str) -> bool:
    try:
        difference = int(new.group()) - int(old.group())
    except ValueError:
        return False
    return difference == 1 or bool(_COUNTER_WORD.search(text[: old.start()]))


def first_difference(before: str, after: str) -> int:
    """Return the offset of the first differing character; the shorter length where one text begins the other."""
    limit = min(len(before), len(after))
    if before[:limit] == after[:limit]:
        return limit
    # Slices are compared in C; halving finds the place in a long text without a Python loop over its characters.
    return bisect_right(range(limit), 0, key=lambda index: before[: index + 1] != after[: index + 1])


@dataclass(frozen=True, slots=True)
class Volatile:
    """A piece of text that will likely differ in the next request."""

    kind: str
    offset: int
    text: str


_NOW_WORD = re.compile(
    r"(?:\bnow\b|today|current|as of|generated|updated|it is|今天|现在|当前)[^\n]{0,24}$", re.IGNORECASE
)
_HAS_CLOCK = re.compile(r"\d:\d{2}|t\d{6}|^\d{10,}", re.IGNORECASE)
_HAS_DIGIT = re.compile(r"\d")
_SCAN_LIMIT = 200_000  # characters of one block that are searched


def find_volatile(text: str, *, only_beside_now_words: bool = False) -> Volatile | None:
    """Return the first text that looks like a clock, an id or a counter, or None.

    Tool descriptions name example dates: there a bare date counts only beside words such as "today".
    """
    text = text[:_SCAN_LIMIT]
    found = []
    for match in TIMESTAMP.finditer(text):
        if not _HAS_DIGIT.search(match.group()):
            continue
        beside_now = bool(_NOW_WORD.search(text[max(0, match.start() - 48) : match.start()]))
        if beside_now or (not only_beside_now_words and (_HAS_CLOCK.search(match.group()) or len(match.group()) >= 8)):
            found.append(Volatile("timestamp", match.start(), match.group()))
            break
    for match in UUID.finditer(text):
        if _HAS_DIGIT.search(match.group()):
            found.append(Volatile("uuid", match.start(), match.group()))
            break
    for match in NUMBER.finditer(text):
        if _COUNTER_WORD.search(text[max(0, match.start() - 32) : match.start()]) and not only_beside_now_words:
            found.append(Volatile("counter", match.start(), match.group()))
            break
    return min(found, key=lambda item: item.offset, default=None)


_SECRET = re.compile(
    r"sk-[\w-]{8,}|mh_[a-z0-9]{8}_[\w-]{20,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END|$)|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"
    r"|(?<=bearer )[\w.~+/-]{12,}"
    r"|(?:(?<=password)|(?<=passwd)|(?<=secret)|(?<=token)|(?<=api_key)|(?<=apikey)|(?<=api-key))[\"']?\s*[:=]\s*[\"']?[^\s\"',;]{4,}",
    re.IGNORECASE,
)
_EXCERPT_BEFORE = 32
_EXCERPT_AFTER = 64
_SECRET_REACH = 400  # a secret that begins this far away is still recognised


def excerpt(text: str, offset: int) -> str:
    """Return the text around the offset with credentials masked."""
    start, end = max(0, offset - _EXCERPT_BEFORE), offset + _EXCERPT_AFTER
    origin = max(0, start - _SECRET_REACH)
    window = text[origin : end + _SECRET_REACH]
    masked = _SECRET.sub(lambda match: "•" * len(match.group()), window)
    return masked[start - origin : end - origin]
