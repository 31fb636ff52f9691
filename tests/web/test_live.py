"""News as events: told once, without holding a connection or a place for ever."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from memoryhub.audit.services import open_change_set
from memoryhub.common import stopping
from memoryhub.web import live
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(live, "LOOK_EVERY_SECONDS", 0)
    yield
    stopping._event.clear()


def _write(workspace: Workspace) -> str:
    return open_change_set(workspace=workspace, actor=Actor("key", "1", "agent"), action="remember").public_id


def _stream(client: Client, query: str = "") -> Any:
    return client.get(f"/live/changes{query}")


def test_each_news_is_told_once(viewer: Client, workspace: Workspace) -> None:
    seen = _write(workspace)
    events = iter(_stream(viewer, f"?after={seen}").streaming_content)

    assert next(events).startswith(b"retry")
    assert next(events) == b": still here\n\n"
    _write(workspace)
    assert next(events) == b'event: news\ndata: {"new": 1}\n\n'
    assert next(events) == b": still here\n\n"


def test_it_ends_itself(viewer: Client, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LIFETIME_SECONDS", 0)

    assert len(list(_stream(viewer).streaming_content)) == 1


def test_it_ends_when_the_hub_stops(viewer: Client, workspace: Workspace) -> None:
    events = iter(_stream(viewer).streaming_content)
    next(events)
    next(events)

    stopping.request()

    assert list(events) == []


@pytest.mark.django_db(transaction=True)  # each stream gives its connection back, which no open transaction may
def test_beyond_the_places_pages_are_told_to_poll(
    viewer: Client, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_places", threading.BoundedSemaphore(1))
    first = _stream(viewer)

    refused = _stream(viewer)
    assert refused.status_code == 503
    assert refused["Retry-After"]
    first.close()

    assert _stream(viewer).status_code == 200


def test_strangers_hear_nothing(stranger: Client, workspace: Workspace) -> None:
    _write(workspace)
    events = iter(_stream(stranger).streaming_content)
    next(events)

    assert next(events) == b": still here\n\n"


def test_nobody_listens_without_signing_in(client: Client, db: None) -> None:
    assert _stream(client).status_code == 302
