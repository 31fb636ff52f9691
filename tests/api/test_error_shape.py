"""Every error of the API has the same body."""

import json

import pytest

KEYS = {"type", "title", "status", "detail", "errors", "request_id"}


def assert_problem(response, status):
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    body = json.loads(response.content)
    assert body.keys() >= KEYS
    assert body["status"] == status
    assert body["request_id"] == response["X-Request-Id"]
    return body


def test_no_key_is_401_and_says_which_scheme(client, db):
    response = client.get("/api/v1/jobs")

    assert_problem(response, 401)
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header", ["Bearer mh_bad_key", "Bearer", "Basic YTpi", "mh_x", "Bearer mh_aaaaaaaa_" + "a" * 43]
)
def test_a_bad_key_is_401(client, db, header):
    assert_problem(client.get("/api/v1/jobs", headers={"Authorization": header}), 401)


def test_a_missing_scope_is_403_and_named(api_with, workspace):
    body = assert_problem(api_with("memories:read").post("/jobs/job_x/retry"), 403)

    assert "admin" in body["detail"]


def test_an_unknown_id_is_404(api):
    assert_problem(api.get("/jobs/job_none"), 404)


def test_an_unknown_address_below_the_api_is_a_problem_too(api):
    assert_problem(api.get("/nothing/here"), 404)


def test_a_bad_parameter_is_422_and_names_the_field(api):
    body = assert_problem(api.get("/jobs?limit=0"), 422)

    assert body["errors"][0]["field"] == "limit"


def test_a_foreign_cursor_is_422(api):
    assert_problem(api.get("/jobs?cursor=abc"), 422)


def test_a_body_above_the_limit_is_413(api):
    assert_problem(api.put("/sessions/s1", b'{"agent": "' + b"a" * (12 * 1024 * 1024) + b'"}'), 413)


def test_the_callers_request_id_is_echoed_when_it_is_harmless(api):
    assert api.get("/jobs", X_Request_Id="trace-1")["X-Request-Id"] == "trace-1"
    assert api.get("/jobs", X_Request_Id="a b<script>")["X-Request-Id"].startswith("req_")
