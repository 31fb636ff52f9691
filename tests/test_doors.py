"""Two ways in: pages carry what browsers need, a program's request goes straight to its view and is checked all the same."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client, RequestFactory

from memoryhub.doors import MOST_UNREAD, DoorMiddleware, is_for_program, read_what_is_left
from tests.conftest import ApiClient


class Nosy:
    """A middleware with a hook that only Django's own list calls."""

    def __init__(self, get_response):
        self.get_response = get_response

    def process_exception(self, request, error):
        return None


@pytest.mark.parametrize(
    ("path", "headers", "cookies", "expected"),
    [
        ("/api/v1/memories", {"Authorization": "Bearer mh_x"}, {}, True),
        ("/api/v1/memories", {"Authorization": "Bearer mh_x"}, {"memoryhub_session": "s"}, True),
        ("/api/v1/memories", {}, {}, True),
        ("/api/v1/memories", {}, {"memoryhub_session": "s"}, False),
        ("/api/v1/docs", {}, {}, False),
        ("/anthropic/v1/messages", {"X-Api-Key": "k"}, {}, True),
        ("/mcp", {"Authorization": "Bearer mh_x"}, {}, True),
        ("/memories", {"Authorization": "Bearer mh_x"}, {}, False),
        ("/", {}, {}, False),
    ],
)
def test_who_is_a_program(path, headers, cookies, expected):
    request = RequestFactory().get(path, headers=headers)
    request.COOKIES = cookies

    assert is_for_program(request) is expected


def test_a_programs_answer_has_its_length_and_shows_nothing_in_a_browser(api: ApiClient):
    answer = api.get("/memories")

    assert answer["Content-Length"] == str(len(answer.content))
    assert answer["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Request-Id"]
    assert not answer.cookies
    assert not hasattr(answer.wsgi_request, "session")


def test_a_page_has_its_policy_and_may_not_be_framed(viewer: Client):
    answer = viewer.get("/")

    assert "nonce-" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"


def test_a_signed_in_person_may_call_the_api_but_changes_need_the_pages_token(workspace, editor: Client):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = editor.cookies

    assert strict.get("/api/v1/memories").status_code == 200
    refused = strict.post("/api/v1/memories", {"content": "x"}, content_type="application/json")
    assert refused.status_code == 403
    assert refused.json()["type"] == "/problems/csrf"


def test_a_form_of_a_page_needs_its_token(viewer: Client):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = viewer.cookies

    assert strict.post("/logout").status_code == 403


@pytest.mark.parametrize("path", ["/api/v1/memories", "/anthropic/v1/models", "/mcp", "/"])
def test_a_host_that_is_not_ours_is_refused(db, path):
    assert Client().get(path, headers={"Host": "evil.example", "Authorization": "Bearer mh_x"}).status_code == 400


def test_a_programs_request_hears_english_whoever_came_before(db, workspace, api: ApiClient):
    Client().get("/login", headers={"Accept-Language": "zh-hans"})

    answer = api.get("/memories/mem_none", Accept_Language="zh-hans")

    assert answer.json()["title"].isascii()


def test_a_middleware_that_pages_would_not_fully_run_is_refused(settings):
    settings.PAGE_MIDDLEWARE = ["tests.test_doors.Nosy"]

    with pytest.raises(ImproperlyConfigured, match="Nosy"):
        DoorMiddleware(lambda request: HttpResponse())


def test_a_body_that_nobody_asked_for_is_read_all_the_same():
    request = RequestFactory().post("/api/v1/memories", b"x" * 10_000, content_type="application/json")

    DoorMiddleware(lambda request: HttpResponse("no", status=403))(request)

    assert request._stream.read() == b""


def test_a_long_body_that_nobody_asked_for_is_left():
    request = RequestFactory().post("/api/v1/memories", b"x" * (MOST_UNREAD + 1), content_type="application/json")

    read_what_is_left(request)

    assert len(request._stream.read()) == MOST_UNREAD + 1


def test_a_body_that_was_read_is_not_read_again(monkeypatch):
    request = RequestFactory().post("/api/v1/memories", b"{}", content_type="application/json")
    assert request.body == b"{}"
    monkeypatch.setattr(request, "read", None)

    read_what_is_left(request)
