"""The fast lane answers what the usual way answers, and takes only what it fully understands."""

import io
import json

import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from memoryhub.api import fast_lane
from memoryhub.workspaces.principals import Binding
from tests.conftest import ApiClient

LOOKUP, PUT = "/api/v1/sessions/s/tool-results/lookup", "/api/v1/sessions/s/tool-results"
OF_ITS_OWN = {"key", "request_id", "age_seconds", "expires_at", "expires_in_seconds", "stored_at", "hit_count"}


class Server:
    """The WSGI application as it is served, and which way a request went."""

    def __init__(self, token):
        self.token, self.usual_way = token, []
        usual = get_wsgi_application()

        def noted(environ, start_response):
            self.usual_way.append(environ["PATH_INFO"])
            return usual(environ, start_response)

        self.application = fast_lane.with_fast_lane(noted)

    def call(self, method, path, body, **environ):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        told = {}
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "SCRIPT_NAME": "",
            "QUERY_STRING": "",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "HTTP_HOST": "localhost",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(raw)),
            "HTTP_AUTHORIZATION": f"Bearer {self.token}",
            "wsgi.input": io.BytesIO(raw),
            "wsgi.errors": io.StringIO(),
            "wsgi.url_scheme": "http",
            **environ,
        }
        pieces = self.application(environ, lambda status, headers: told.update(status=status, headers=dict(headers)))
        data = b"".join(pieces)
        is_json = "json" in told["headers"].get("Content-Type", "")
        return int(told["status"].split()[0]), told["headers"], json.loads(data) if is_json else None


@pytest.fixture
def server(api: ApiClient):
    api.put("/tool-policies/read", {"cacheable": True})
    api.put("/tool-policies/write", {"cacheable": False, "invalidates": ["read"]})
    around_requests = (request_started, request_finished)
    for signal in around_requests:
        signal.disconnect(close_old_connections)  # the test's own transaction goes on, as under Django's test client
    yield Server(api.token)
    for signal in around_requests:
        signal.connect(close_old_connections)


def comparable(answer):
    if isinstance(answer, dict):
        return {name: comparable(value) for name, value in answer.items() if name not in OF_ITS_OWN}
    return answer


FILE = {"kind": "file", "path": "/a", "size": 3, "mtime_ns": 5, "ino": 7}
STORIES = [
    [("POST", LOOKUP, {"tool": "read", "params": {"p": 1}})],
    [
        ("PUT", PUT, {"tool": "read", "params": {"p": 1}, "value": None}),
        ("POST", LOOKUP, {"tool": "read", "params": {"p": 1}}),
    ],
    [
        ("PUT", PUT, {"tool": "read", "value": {"é": [1, 2.5, "汉"]}, "cost_ms": 12, "ttl_seconds": 60.5}),
        ("POST", LOOKUP, {"tool": "read"}),
    ],
    [("PUT", PUT, {"tool": "read", "value": 1, "ttl_seconds": 0}), ("POST", LOOKUP, {"tool": "read"})],
    [("PUT", PUT, {"tool": "unknown", "value": 1}), ("POST", LOOKUP, {"tool": "unknown"})],
    [
        ("PUT", PUT, {"tool": "read", "value": 1}),
        ("PUT", PUT, {"tool": "write", "value": 1}),
        ("POST", LOOKUP, {"tool": "read"}),
    ],
    [
        ("PUT", PUT, {"tool": "read", "value": 1, "depends_on": [FILE]}),
        ("POST", LOOKUP, {"tool": "read"}),
        ("POST", LOOKUP, {"tool": "read", "fingerprints": [FILE]}),
        ("POST", LOOKUP, {"tool": "read", "fingerprints": [{**FILE, "size": 4}]}),
    ],
    [("PUT", PUT, {"tool": "read", "value": 1, "tool_version": "2", "root": "r", "env": {"A": "b"}})],
    [("PUT", PUT, {"tool": "read", "value": 1, "ttl_seconds": -1})],
    [("PUT", PUT, {"tool": "read", "value": 1, "depends_on": [{"kind": "nonsense"}]})],
    [("POST", LOOKUP, {"tool": "read", "fingerprints": [{"no": "kind"}]})],
]


@pytest.mark.parametrize("story", STORIES, ids=range(len(STORIES)))
def test_both_ways_give_the_same_answers(server, api, story):
    fast = [server.call(*request) for request in story]
    usual = [api.call(method, path[len("/api/v1") :].replace("/s/", "/usual/"), body) for method, path, body in story]

    assert server.usual_way == []
    for (status, headers, got), expected in zip(fast, usual, strict=True):
        assert (status, headers["Content-Type"]) == (expected.status_code, expected["Content-Type"])
        assert comparable(got) == comparable(expected.json())


@pytest.mark.parametrize(
    ("method", "path", "body", "environ", "status"),
    [
        ("POST", LOOKUP, b"{", {}, 400),
        ("POST", LOOKUP, [], {}, 422),
        ("POST", LOOKUP, {}, {}, 422),
        ("POST", LOOKUP, {"tool": ""}, {}, 422),
        ("POST", LOOKUP, {"tool": 5}, {}, 422),
        ("POST", LOOKUP, {"tool": "read", "misspelt": 1}, {}, 422),
        ("POST", LOOKUP, {"tool": "read", "lease": True}, {}, 200),
        ("PUT", PUT, {"tool": "read", "value": 1, "ttl_seconds": "soon"}, {}, 422),
        ("PUT", PUT, {"tool": "read", "value": 1, "depends_on": None}, {}, 201),
        ("POST", LOOKUP, {"tool": "read"}, {"HTTP_AUTHORIZATION": "Bearer mh_nobody"}, 401),
        ("POST", LOOKUP, {"tool": "read"}, {"HTTP_AUTHORIZATION": ""}, 401),
        ("POST", LOOKUP, {"tool": "read"}, {"HTTP_HOST": "evil.example"}, 400),
        ("POST", LOOKUP, {"tool": "read"}, {"HTTP_IDEMPOTENCY_KEY": "k"}, 200),
        ("PUT", LOOKUP, {"tool": "read"}, {}, 405),
        ("POST", PUT, {"tool": "read"}, {}, 405),
        ("POST", LOOKUP + "/", {"tool": "read"}, {}, 404),
    ],
)
def test_what_needs_explaining_goes_the_usual_way(server, method, path, body, environ, status):
    answer = server.call(method, path, body, **environ)

    assert server.usual_way == [path]
    assert answer[0] == status


def test_a_key_that_is_bound_or_may_not_goes_the_usual_way(server, api_with):
    reader = api_with("cache:read").token
    bound = api_with("cache:write", binding=Binding(project="atlas")).token

    assert server.call("POST", LOOKUP, {"tool": "read"}, HTTP_AUTHORIZATION=f"Bearer {reader}")[0] == 200
    assert server.usual_way == []
    assert server.call("PUT", PUT, {"tool": "read", "value": 1}, HTTP_AUTHORIZATION=f"Bearer {reader}")[0] == 403
    assert server.call("PUT", PUT, {"tool": "read", "value": 1}, HTTP_AUTHORIZATION=f"Bearer {bound}")[0] == 201
    assert server.usual_way == [PUT, PUT]


def test_the_answer_has_what_every_answer_for_a_program_has(server):
    _, headers, _ = server.call("POST", LOOKUP, {"tool": "read"}, HTTP_X_REQUEST_ID="mine-7")

    assert headers["X-Request-Id"] == "mine-7"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert int(headers["Content-Length"]) > 0


def test_a_forged_request_id_is_not_echoed(server):
    _, headers, _ = server.call("POST", LOOKUP, {"tool": "read"}, HTTP_X_REQUEST_ID="a\r\nSet-Cookie: b")

    assert headers["X-Request-Id"].startswith("req_")


def test_a_fault_is_told_and_logged(server, monkeypatch, caplog):
    def broken(**_):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(fast_lane, "look_up", broken)

    status, headers, problem = server.call("POST", LOOKUP, {"tool": "read"})

    assert (status, headers["Content-Type"]) == (500, "application/problem+json")
    assert problem["request_id"] == headers["X-Request-Id"]
    assert "no such luck" not in str(problem)
    assert "no such luck" in caplog.text
