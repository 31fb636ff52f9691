"""News as server-sent events: how many change sets came since the newest one on the page.

A stream holds a thread and no database connection, ends itself after a minute, and is given only to so many pages at once; the
others are told to poll. The page closes its stream while its tab is hidden.
"""

import json
import threading
from collections.abc import Callable, Iterator

from django.conf import settings
from django.db import connection
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from memoryhub.audit.queries import count_change_sets_after
from memoryhub.common import clock, stopping
from memoryhub.web.access import MemberRequest, member
from memoryhub.workspaces.models import Workspace

LIFETIME_SECONDS = 60
LOOK_EVERY_SECONDS = 2
POLL_AGAIN_SECONDS = 30
_places = threading.BoundedSemaphore(max(1, settings.MAX_STREAMS // 4))


@require_GET
@member("viewer")
def live_changes(request: MemberRequest) -> HttpResponseBase:
    """Stream the count of new change sets, or answer 503 where too many pages listen already."""
    if not _places.acquire(blocking=False):
        return HttpResponse(status=503, headers={"Retry-After": str(POLL_AGAIN_SECONDS)})
    events = _news(request.principal.workspace, request.GET.get("after", "")[:32])
    response = StreamingHttpResponse(_Seat(events, _places.release), content_type="text/event-stream")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    _give_connection_back()
    return response


class _Seat:
    """The events of one stream; its place is given back however it ends, also when it never began."""

    def __init__(self, events: Iterator[bytes], release: Callable[[], None]) -> None:
        self._events = events
        self._release: Callable[[], None] | None = release

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._events)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the place back, once."""
        release, self._release = self._release, None
        if release is not None:
            release()


def _news(workspace: Workspace, after: str) -> Iterator[bytes]:
    end = clock.monotonic() + LIFETIME_SECONDS
    told = 0
    yield b"retry: 5000\n\n"
    while not stopping.is_set() and clock.monotonic() < end:
        new = count_change_sets_after(workspace, after)
        _give_connection_back()
        if new != told:
            told = new
            yield f"event: news\ndata: {json.dumps({'new': new})}\n\n".encode()
        else:
            yield b": still here\n\n"
        if stopping.wait(LOOK_EVERY_SECONDS):
            return


def _give_connection_back() -> None:
    if not connection.in_atomic_block:
        connection.close()
