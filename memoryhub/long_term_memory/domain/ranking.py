"""From a query and a pool of documents to scores, each with its parts.

Relevance joins words (BM25 over text, subject, date words and neighbours in the session) and meaning (cosine of
sentence vectors), both scaled to 0..1 within the pool, and four cheap hints. Recency, importance (as strength) and
access are 0..1 each. The score is their weighted mean. Everything is numpy over whole columns: a scope of a thousand
memories takes a few milliseconds, and both databases rank alike because neither of them ranks.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# BM25 as Robertson and Zaragoza give it.
K1 = 1.2
B = 0.75
# How much a word in each place counts beside one in the text (1).
SUBJECT_WEIGHT = 2.0
NEIGHBOUR_WEIGHTS = ((1, 0.5), (-1, 0.3), (2, 0.3), (-2, 0.2))  # (places back in the session, weight)
# Words against meaning: words lead as far as they cover the query.
WORDS_SHARE = 0.7
FULL_COVERAGE = 0.3  # share of the best possible BM25 from which words have their full weight
# Cheap hints, added to relevance before it is scaled back to 0..1; found on conversations, at turn level.
SUBJECT_HINT = 0.12  # the query names the memory's subject
SESSION_HINT = 0.12  # the session's share of the score mass of the first 30
LENGTH_HINT = 0.3  # longer memories say more
QUESTION_HINT = -0.08  # a question rarely answers one
SESSION_HINT_TOP = 30
HINT_TOTAL = SUBJECT_HINT + SESSION_HINT + LENGTH_HINT
MIN_COSINE = 0.12  # without a common word, a vector further away than this is no match at all
RECENCY_HALF_DAYS = 30.0  # a memory of this age has recency 1/2
RATING_STEP = 0.03  # each helpful (harmful) rating moves the score by this share, five at most
MAX_RATINGS = 5
SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True)
class Weights:
    """How much each part of a score counts; the score is the weighted mean."""

    relevance: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    access: float = 0.0

    def validated(self) -> "Weights":
        """Return itself, or raise ValueError."""
        values = [getattr(self, field.name) for field in fields(self)]
        if not all(math.isfinite(value) and 0 <= value <= 1_000 for value in values):
            raise ValueError("each weight must lie between 0 and 1000")
        if sum(values) <= 0:
            raise ValueError("at least one weight must be above 0")
        return self

    @property
    def total(self) -> float:
        return self.relevance + self.recency + self.importance + self.access

    def as_dict(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


DEFAULT_WEIGHTS = Weights(relevance=0.9, recency=0.04, importance=0.04, access=0.02)


@dataclass
class Pool:
    """Documents as columns. Rows of one session stand together, in the order in which they were made."""

    keys: Ints
    sessions: Ints  # 0 where there is none
    created: Floats  # seconds since 1970
    importance: Floats
    daily_loss: Floats
    floor: Floats
    idle_since: Floats
    access_count: Floats
    rating: Floats
    word_count: Floats
    token_count: Floats
    is_question: Bools
    has_context: Bools
    terms: npt.NDArray[np.uint32]  # of all rows, one after the other
    counts: npt.NDArray[np.uint8]  # (len(terms), 3): in the text, in the subject, elsewhere in tenths
    owners: Ints  # the row of each term
    vectors: npt.NDArray[np.float32] | None = None  # unit length; rows without one are zero
    has_vector: Bools | None = None

    def __len__(self) -> int:
        return len(self.keys)


@dataclass
class Query:
    """A query in the terms of the index; `vector` is None where meaning is not asked for or not to be had."""

    terms: list[int]
    now: float
    weights: Weights
    vector: npt.NDArray[np.float32] | None = None


@dataclass
class Scores:
    """Per row of the pool: the score, its four parts, what relevance was made of, and whether it is a match at all."""

    score: Floats
    relevance: Floats
    recency: Floats
    importance: Floats
    access: Floats
    words: Floats
    meaning: Floats
    hints: Floats
    matches: Bools
    words_share: float

    def order(self, keys: Ints, *, strict: bool) -> Ints:
        """Row numbers, best first, ties by key; with `strict` only matches."""
        order = np.lexsort((keys, -self.score))
        return order[self.matches[order]] if strict else order

    def parts(self, row: int) -> dict[str, float]:
        return {name: float(getattr(self, name)[row]) for name in ("relevance", "recency", "importance", "access")}


def score_pool(pool: Pool, query: Query) -> Scores:
    """Score every row of a pool."""
    strength = np.maximum(
        pool.floor,
        pool.importance * np.exp(-pool.daily_loss * np.maximum(0.0, query.now - pool.idle_since) / SECONDS_PER_DAY),
    )
    age_days = np.maximum(0.0, query.now - pool.created) / SECONDS_PER_DAY
    recency = 1.0 / (1.0 + age_days / RECENCY_HALF_DAYS)
    log_access = np.log1p(pool.access_count)
    access = log_access / (1.0 + log_access)
    if query.weights.relevance > 0:
        relevance, words, meaning, hints, matches, share = _relevance(pool, query)
    else:
        relevance = words = meaning = hints = np.zeros(len(pool))
        matches, share = np.ones(len(pool), dtype=bool), 0.0
    weights = query.weights
    score = (
        weights.relevance * relevance
        + weights.recency * recency
        + weights.importance * strength
        + weights.access * access
    ) / weights.total
    if weights.relevance > 0:  # weight on one of the others alone gives exactly that order
        score = score * (1.0 + RATING_STEP * np.clip(pool.rating, -MAX_RATINGS, MAX_RATINGS))
        score = np.clip(score / (1.0 + RATING_STEP * MAX_RATINGS) if pool.rating.any() else score, 0.0, 1.0)
    return Scores(score, relevance, recency, strength, access, words, meaning, hints, matches, share)


def _relevance(pool: Pool, query: Query) -> tuple[Floats, Floats, Floats, Floats, Bools, float]:
    bm25, coverage, subject_named, own = _bm25(pool, query.terms)
    words = bm25 / bm25.max() if bm25.size and bm25.max() > 0 else bm25
    matches = own
    if query.vector is not None and pool.vectors is not None and pool.has_vector is not None:
        cosine = _cosine(pool, query.vector)
        meaning = _min_max(np.where(pool.has_vector, cosine, np.nan))
        share = WORDS_SHARE * min(1.0, coverage / FULL_COVERAGE)
        base = share * words + (1 - share) * meaning
        matches = matches | (pool.has_vector & (cosine >= MIN_COSINE))
    else:
        meaning, share, base = np.zeros(len(pool)), 1.0, words
    hints = (
        SUBJECT_HINT * subject_named
        + SESSION_HINT * _session_share(pool, base)
        + LENGTH_HINT * np.minimum(1.0, np.log1p(pool.word_count) / 4.5)
        + QUESTION_HINT * pool.is_question
    )
    relevance = np.clip((base + hints) / (1.0 + HINT_TOTAL), 0.0, 1.0)
    return relevance, words, meaning, hints, matches, share


def _bm25(pool: Pool, terms: list[int]) -> tuple[Floats, float, Floats, Bools]:
    """BM25 per row, the best row's share of what is possible, whether the subject is named, whether it has a term itself.

    Neighbours lift a memory that matches; alone they do not make it a match.
    """
    count = len(pool)
    frequency, named = np.zeros((count, len(terms))), np.zeros(count)
    text = np.zeros((count, len(terms)))
    for column, term in enumerate(terms):
        at = np.flatnonzero(pool.terms == term)
        if not at.size:
            continue
        rows, found = pool.owners[at], pool.counts[at]
        text[rows, column] = found[:, 0]
        frequency[rows, column] = found[:, 0] + SUBJECT_WEIGHT * found[:, 1] + found[:, 2] / 10.0
        named[rows] = np.maximum(named[rows], found[:, 1] > 0)
    own = frequency.any(axis=1)
    lengths = pool.token_count.copy()
    own_lengths = pool.word_count
    for places, weight in NEIGHBOUR_WEIGHTS:
        source, target = _neighbours(pool, places)
        frequency[target] += weight * text[source]
        lengths[target] += own_lengths[source]
    holding = (frequency > 0).sum(axis=0)
    idf = np.log1p((count - holding + 0.5) / (holding + 0.5))
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()) if count else 1.0, 1e-9))
    bm25 = (idf * frequency * (K1 + 1) / (frequency + norm[:, None])).sum(axis=1) if terms else np.zeros(count)
    best_possible = (K1 + 1) * float(idf.sum())
    coverage = float(bm25.max()) / best_possible if best_possible > 0 and count else 0.0
    return bm25, coverage, named, np.asarray(own, dtype=bool)


def _neighbours(pool: Pool, places: int) -> tuple[Ints, Ints]:
    """(source, target) rows: the source stands `places` before the target in the same session.

    A document that brought its context along has its neighbours' words already.
    """
    count = len(pool)
    step = abs(places)
    if count <= step:
        empty = np.zeros(0, dtype=np.int64)
        return empty, empty
    earlier, later = np.arange(count - step), np.arange(step, count)
    source, target = (earlier, later) if places > 0 else (later, earlier)
    same = (pool.sessions[source] == pool.sessions[target]) & (pool.sessions[source] != 0) & ~pool.has_context[target]
    return source[same], target[same]


def _cosine(pool: Pool, query: npt.NDArray[np.float32]) -> Floats:
    """Cosine of the query with each row's vector, summed with those of its neighbours in the session."""
    assert pool.vectors is not None
    if not pool.sessions.any():
        return (pool.vectors @ query).astype(np.float64)
    mixed = pool.vectors.copy()
    for places, weight in NEIGHBOUR_WEIGHTS:
        source, target = _neighbours(pool, places)
        mixed[target] += np.float32(weight) * pool.vectors[source]
    norms = np.sqrt(np.einsum("ij,ij->i", mixed, mixed))
    similar = mixed @ query
    return (similar / np.where(norms > 0, norms, 1.0)).astype(np.float64)


def _min_max(values: Floats) -> Floats:
    """Scaled to 0..1 within the pool; what has no value is 0."""
    known = values[~np.isnan(values)]
    if not known.size:
        return np.zeros(len(values))
    low, high = float(known.min()), float(known.max())
    if high - low < 1e-9:
        return np.where(np.isnan(values), 0.0, max(0.0, min(1.0, high)))
    return np.where(np.isnan(values), 0.0, (values - low) / (high - low))


def _session_share(pool: Pool, base: Floats) -> Floats:
    """The share of each row's session in the score mass of the best rows."""
    if not pool.sessions.any():
        return np.zeros(len(pool))
    top = np.argsort(-base, kind="stable")[:SESSION_HINT_TOP]
    mass = float(base[top].sum())
    if mass <= 0:
        return np.zeros(len(pool))
    _, place = np.unique(pool.sessions, return_inverse=True)
    shares = np.bincount(place[top], weights=base[top] / mass, minlength=int(place.max()) + 1)
    return np.where(pool.sessions != 0, shares[place], 0.0)


def explain(scores: Scores, row: int, weights: Weights) -> dict[str, Any]:
    """How one row's score came about, in plain numbers."""
    return {
        "score": float(scores.score[row]),
        "parts": scores.parts(row),
        "weights": weights.as_dict(),
        "relevance": {
            "words": float(scores.words[row]),
            "meaning": float(scores.meaning[row]),
            "words_share": scores.words_share,
            "hints": float(scores.hints[row]),
        },
    }
