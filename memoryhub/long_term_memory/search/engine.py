"""From a request to a scored pool: everything where the selection is small, candidates where it is large."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from django.core.cache import cache
from django.db import connection

from memoryhub.long_term_memory.domain import text
from memoryhub.long_term_memory.domain.ranking import Pool, Query, Scores, Weights, score_pool
from memoryhub.long_term_memory.models import SCOPE_SHIFT, EmbeddingModel, Memory
from memoryhub.long_term_memory.search import documents, embedders, history, vectors
from memoryhub.long_term_memory.search.base import TermIndex, Where
from memoryhub.long_term_memory.search.index import term_index
from memoryhub.long_term_memory.search.pool import TABLE, Row, load_keys, load_where
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.search.selection import Selection, select
from memoryhub.workspaces.models import Workspace

CAP = 600  # documents that one term may bring as candidates; a term that has more is common
MAX_CANDIDATES = 2_000
MAX_PAIRS = 6  # common terms are asked for in pairs
NEWEST = 200  # candidates for each of recency, strength and access, where they have weight
NEAREST = 400  # candidates by meaning
CONTEXT_ROWS = 60  # best candidates whose session neighbours are read as well
CONTEXT_LIMIT = 1_000
MOSTLY = 0.25  # share of the hub's documents from which a workspace's own token tells too little
SHARE_SECONDS = 600
MAX_QUERY_CHARS = 8_000
MAX_QUERY_TERMS = 64


@dataclass
class Ranking:
    """A scored pool, with the notes that a caller should pass on (`embedder_unavailable`)."""

    pool: Pool
    scores: Scores
    terms: list[int]
    is_whole: bool  # every document that passes the filters is in the pool
    notes: list[str] = field(default_factory=list)
    forms: dict[int, Memory] = field(
        default_factory=dict
    )  # of a search with `as_of`: what was written since, as it stood

    def best(self, limit: int, weights: Weights) -> list[int]:
        """Rows of the pool, best first; with weight on relevance only those that match the query at all."""
        return self.scores.order(self.pool.keys, strict=weights.relevance > 0)[:limit].tolist()


def rank(workspace: Workspace, request: SearchRequest, now: datetime) -> Ranking:
    """Score what the request may return."""
    query, notes = _understand(request, now)
    selection = select(workspace, request, now)
    model_id = _model_id() if query.vector is not None else None
    wants_text = request.weights.relevance > 0
    past = history.look_back(workspace, request, now, model_id)
    if selection.is_small or not wants_text:
        where = selection.keys & selection.where if selection.keys is not None else selection.where
        pool = load_where(where, text=wants_text, model_id=model_id, extra=past.rows)
    else:
        pool = _candidates(workspace, selection, query, model_id, past.rows)
    whole = selection.is_small or not wants_text
    return Ranking(pool, score_pool(pool, query), query.terms, whole, [*notes, *past.notes], past.forms)


def _understand(request: SearchRequest, now: datetime) -> tuple[Query, list[str]]:
    """The query's terms and vector; an embedder that is down costs the vector, not the search."""
    asked = request.query[:MAX_QUERY_CHARS]
    terms = [text.term_id(token) for token in text.query_tokens(asked)][:MAX_QUERY_TERMS]
    query = Query(list(dict.fromkeys(terms)), now.timestamp(), request.weights)
    embedder = embedders.current()
    if request.weights.relevance <= 0 or not embedder.model_id or not asked.strip():
        return query, []
    try:
        query.vector = embedder.embed([asked], "query")[0]
    except embedders.EmbedderUnavailable:
        return query, ["embedder_unavailable"]
    return query, []


def _model_id() -> int | None:
    name = embedders.current().model_id
    return EmbeddingModel.objects.filter(name=name).values_list("id", flat=True).first()


def _candidates(
    workspace: Workspace, selection: Selection, query: Query, model_id: int | None, extra: Sequence[Row] = ()
) -> Pool:
    """A pool of the documents that could rank first in a large selection, and of the rows that are given beside them."""
    keys = dict.fromkeys(_by_words(term_index(), _places(workspace, selection), query.terms, selection.where))
    if query.vector is not None and model_id is not None:
        keys |= dict.fromkeys(vectors.nearest(workspace.pk, model_id, query.vector, selection.scope_ids, NEAREST))
    keys |= dict.fromkeys(_by_facts(selection, query.weights))
    first = list(keys)[: MAX_CANDIDATES + NEAREST + 3 * NEWEST]
    pool = load_keys(first, where=selection.where, model_id=model_id, extra=extra)
    neighbours = _session_neighbours(pool, score_pool(pool, query), set(keys))
    if neighbours:
        wider = [*pool.keys.tolist(), *neighbours]
        pool = load_keys(wider, where=selection.where, model_id=model_id, extra=extra)
    return pool


def _places(workspace: Workspace, selection: Selection) -> list[int]:
    """The tokens under which the index is asked: of the scopes, or of the workspace where most documents are others'.

    Of a workspace that holds most of them, its token would be met with nearly every term's documents for nothing.
    """
    if selection.scope_ids is not None:
        return [documents.scope_token(scope_id) for scope_id in selection.scope_ids]
    return [] if share_of_documents(workspace) >= MOSTLY else [documents.workspace_token(workspace.pk)]


def share_of_documents(workspace: Workspace) -> float:
    """About which part of the hub's documents are the workspace's, from 0 to 1; counted now and then."""
    key = f"search-share:{workspace.pk}"
    share = cache.get(key)
    if share is None:
        every = Memory.objects.count()  # each has one document
        share = Memory.objects.filter(workspace=workspace).count() / every if every else 0.0
        cache.set(key, share, SHARE_SECONDS)
    return float(share)


def _by_words(index: TermIndex, scopes: Sequence[int], terms: Sequence[int], where: Where) -> list[int]:
    """Documents by the query's terms: all of a rare term, of common terms those that hold two of them."""
    found: dict[int, None] = {}
    common = []
    for term in terms:
        keys = index.find(scopes=scopes, terms=[term], where=where, cap=CAP)
        if len(keys) < CAP:
            found |= dict.fromkeys(keys)
        else:
            common.append((term, keys))
    pairs = [(a, b) for place, (a, _) in enumerate(common) for b, _ in common[place + 1 :]][:MAX_PAIRS]
    for a, b in pairs:
        found |= dict.fromkeys(index.find(scopes=scopes, terms=[a, b], where=where, cap=CAP))
    if len(common) > 2:
        every = [term for term, _ in common]
        found |= dict.fromkeys(index.find(scopes=scopes, terms=every, where=where, cap=CAP))
    for _, keys in common:  # last, so that the limit cuts these
        found |= dict.fromkeys(keys)
    return list(found)[:MAX_CANDIDATES]


def _by_facts(selection: Selection, weights: Weights) -> list[int]:
    """The newest documents, where recency has weight beside relevance."""
    if weights.recency <= 0:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT d.key FROM long_term_memory_memory m JOIN {TABLE} d "  # noqa: S608
            f"ON d.key = ((m.scope_id << {SCOPE_SHIFT}) | m.id) WHERE m.workspace_id = d.workspace_id "
            f"AND {selection.where.sql} ORDER BY m.created_at DESC LIMIT %s",
            [*selection.where.values, NEWEST],
        )
        return [row[0] for row in cursor.fetchall()]


def _session_neighbours(pool: Pool, scores: Scores, known: set[int]) -> list[int]:
    """The other memories of the best candidates' sessions: their words count as context."""
    best = np.argsort(-scores.score, kind="stable")[:CONTEXT_ROWS]
    sessions = {int(session) for session in pool.sessions[best] if session}
    if not sessions:
        return []
    rows = Memory.objects.filter(session_id__in=sessions).values_list("scope_id", "id")[:CONTEXT_LIMIT]
    return [key for key in (documents.document_key(scope_id, pk) for scope_id, pk in rows) if key not in known]
