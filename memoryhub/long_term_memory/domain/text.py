"""Text analysis for full-text recall: one tokeniser for both databases, for what is stored and for what is asked.

Words are lower-cased and stemmed; runs of Chinese, Japanese or Korean characters become overlapping pairs and single
characters, so that a two-character word is found inside a sentence without a dictionary.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache

from memoryhub.long_term_memory.domain.stemming import stem

MAX_TOKEN_CHARS = 64  # longer runs (hashes, base64) are cut: nobody searches for them by prefix
MAX_TOKENS = 20_000  # of one text; 100 KiB of ordinary text stays below

_CJK = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)?")
_IS_CJK = re.compile(rf"[{_CJK}]")

_STOP_WORDS = """
a about after all also am an and any are as at be because been before being but by can could did do does doing don for
from further had has have having he her here hers him his how i if in into is it its itself just me more most my myself
no nor not now of off on once only or other our ours out over own s same she should so some such t than that the their
theirs them then there these they this those through to too until up very was we were what when where which while who
whom why will with would you your yours ll ve re im
的 了 是 在 吗 呢 和 与 我 你 他 她 它 们 这 那 有 就 也 都 很 吧 啊 么 什么 怎么 谁 哪
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


@lru_cache(maxsize=131_072)
def term_id(token: str) -> int:
    """A stable 32-bit number for a token: what the index stores instead of the words themselves."""
    return zlib.crc32(token.encode("utf-8", "surrogatepass"))


def words(text: str) -> list[str]:
    """The lower-case words of a text, CJK runs whole, nothing stemmed."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return _TOKEN.findall(folded)[:MAX_TOKENS]


def tokens(text: str) -> list[str]:
    """The tokens that stand for a text in the index, stop words included."""
    return [token for word in words(text) for token in _tokens_of(word)][:MAX_TOKENS]


def _tokens_of(word: str) -> Sequence[str]:
    if _IS_CJK.match(word):
        return [*word, *(word[i : i + 2] for i in range(len(word) - 1))]
    base = word.split("'", 1)[0].split("’", 1)[0]
    return (stem(base[:MAX_TOKEN_CHARS]),)


@lru_cache(maxsize=131_072)
def _terms_of(word: str) -> tuple[int, ...]:
    return tuple(map(term_id, _tokens_of(word)))


def meaningful_terms(plain: Iterable[str]) -> set[int]:
    """The distinct terms of a text's words, without those of stop words."""
    return set(_terms([word for word in plain if word not in STOP_WORDS]))


def query_tokens(query: str) -> list[str]:
    """The distinct tokens worth asking for, in order; a query of stop words only keeps them."""
    plain = words(query)
    kept = [word for word in plain if word.split("'", 1)[0].split("’", 1)[0] not in STOP_WORDS]
    found = tokens(" ".join(kept or plain))
    if kept:
        meaningful = [token for token in found if token not in STOP_WORDS]
        found = meaningful or found
    return list(dict.fromkeys(found))


def term_counts(text: str) -> Counter[int]:
    """How often each term stands in a text."""
    return count_terms(words(text))


def count_terms(plain: Iterable[str]) -> Counter[int]:
    """How often each term stands among the words of a text; common words are looked up, not analysed anew."""
    return Counter(_terms(plain)[:MAX_TOKENS])


def _terms(plain: Iterable[str]) -> list[int]:
    return [term for word in plain for term in (_terms_of(word) if len(word) <= MAX_TOKEN_CHARS else _long(word))]


def _long(word: str) -> list[int]:
    return [term_id(token) for token in _tokens_of(word)]


def date_words(at: date) -> str:
    """What people call a day: `2023 may 8 monday`."""
    return f"{at.year} {at:%B} {at.day} {at:%A} {at:%Y-%m-%d}"
