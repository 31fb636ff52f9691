"""Invalidations: announce a change, read the log, hear of changes as they happen."""

import threading
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import StreamingHttpResponse
from ninja import Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.tool_results import (
    InvalidationIn,
    InvalidationLogOut,
    InvalidationOut,
    InvalidationPage,
)
from memoryhub.common import errors
from memoryhub.flows.invalidate import announce, preview_invalidation
from memoryhub.invalidation import queries, streaming
from memoryhub.invalidation.domain.selector import FIELDS, EmptySelector, Selector
from memoryhub.invalidation.services import Announcement
from memoryhub.session_cache.domain.cache_key import Uncacheable, canonical_json, params_hash

router = Router(tags=["Tool results"])
_open_streams = threading.BoundedSemaphore(settings.MAX_STREAMS)


class EmptyInvalidation(errors.Invalid):
    slug = "empty-selector"
    title = "An invalidation needs a selector"


@router.post(
    "/invalidations",
    auth=requires("cache:write"),
    response=InvalidationOut,
    operation_id="invalidate",
    summary="Invalidate tool results",
)
def post_invalidation(request: ApiRequest, body: InvalidationIn) -> Any:
    """Drops what the selectors touch, and whatever is being computed from before. `dry_run` only counts."""
    principal = request.principal
    selector = _selector(body)
    if body.dry_run:
        outcome = preview_invalidation(workspace=principal.workspace, selector=selector)
        return InvalidationOut(id=None, matched=outcome.matched, invalidated=0)
    change = Announcement(selector, principal.actor, reason=body.reason, strategy=_strategy(selector), door="api")
    outcome = announce(workspace=principal.workspace, announcement=change)
    record = outcome.record
    return InvalidationOut(
        id=record.public_id if record else None,
        matched=outcome.matched,
        invalidated=outcome.invalidated,
        epoch=record.epoch if record else None,
    )


def _selector(body: InvalidationIn) -> Selector:
    try:
        hashed = params_hash(canonical_json(body.params)) if "params" in body.model_fields_set else None
        return Selector(
            session=body.session,
            tool=body.tool,
            params_hash=hashed,
            key=body.key,
            tag=body.tag,
            path=body.path,
            event=body.event,
        )
    except EmptySelector as error:
        raise EmptyInvalidation(f"Name at least one of {', '.join(FIELDS)}.") from error
    except Uncacheable as error:
        raise EmptyInvalidation(f"The parameters have no canonical form: {error}.") from error


def _strategy(selector: Selector) -> str:
    if selector.path:
        return "event"
    return "dependency" if selector.tag else "manual"


@router.get(
    "/invalidations",
    auth=requires("cache:read"),
    response=InvalidationPage,
    operation_id="listInvalidations",
    summary="The log of invalidations, the newest first",
)
def list_invalidations(request: ApiRequest, limit: Limit, cursor: Cursor = None) -> Any:
    """What was invalidated, why, by whom, through which strategy and door."""
    found = queries.list_invalidations(request.principal.workspace)
    order = [("created_at", "desc"), ("id", "desc")]
    return page(found, order=order, cursor=cursor, limit=limit, shape=InvalidationLogOut.of)


@router.get(
    "/invalidations/stream",
    auth=requires("cache:read"),
    operation_id="streamInvalidations",
    summary="Hear of invalidations as they happen (server-sent events)",
)
def stream_invalidations(request: ApiRequest) -> Any:
    """`hello` with the epoch, then `invalidation` for each; `reset` where too many were missed. Ends after a minute:
    connect again with Last-Event-ID, and drop what you hold whenever the stream breaks.
    """
    if not _open_streams.acquire(blocking=False):
        raise errors.Unavailable("Too many streams are open; ask GET /invalidations instead.", retry_after_seconds=5)
    last_seen = request.headers.get("Last-Event-ID", "")
    after = int(last_seen) if last_seen.isascii() and last_seen.isdigit() and len(last_seen) < 19 else None
    events = streaming.events(request.principal.workspace.pk, after=after)
    response = StreamingHttpResponse(_released(events), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    if not connection.in_atomic_block:
        connection.close()  # the stream looks now and then, and holds no connection in between
    return response


class _Released:
    """Passes the events on, and gives the stream's place back however it ends, even if it never began."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._events = events
        self._is_open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._events)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            _open_streams.release()
            close = getattr(self._events, "close", None)
            if close is not None:
                close()


def _released(events: Iterator[bytes]) -> _Released:
    return _Released(events)
