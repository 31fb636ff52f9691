"""Every operation of the API x everybody who might call it. Made from the API itself, so a new route can't be forgotten.

A request that may not pass must stop at the door (401, 403); one that may pass gets anything else: the bodies here are empty, so
most end in 404 or 422. Ids of another workspace are 404 (tests of each noun try them with real rows).
"""

import re

import pytest
from django.test import Client

from memoryhub.api.app import api as hub_api
from memoryhub.api.openapi import scopes_by_operation
from memoryhub.workspaces.principals import ALL_SCOPES, ROLE_SCOPES

OPERATIONS = sorted(scopes_by_operation(hub_api).items(), key=str)
NAMED = [pytest.param(method, path, scope, id=f"{method} {path}") for (method, path), scope in OPERATIONS]
PUBLIC: set[tuple[str, str]] = set()
STREAMS = {"/api/v1/invalidations/stream"}  # an open stream is read by its own tests


def filled(path: str) -> str:
    return re.sub(r"{[^}]+}", "none", path)


def call(method: str, path: str, *, client: Client | None = None, **headers: str):
    body = b"" if method in ("GET", "DELETE") else b"{}"
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return (client or Client()).generic(method, filled(path), body, content_type="application/json", headers=sent)


def is_stopped_at_the_door(response) -> bool:
    """Whether the scope was missing; a 403 for another reason (a folder that is not open) comes from behind the door."""
    return response.status_code == 403 and response.json()["type"] == "/problems/missing-scope"


def test_the_matrix_is_not_empty():
    assert len(OPERATIONS) > 40


@pytest.mark.parametrize(("method", "path", "scope"), NAMED)
def test_every_operation_names_its_scope_or_is_for_every_known_caller(method, path, scope):
    assert scope in ALL_SCOPES or path.startswith("/api/v1/jobs"), path
    if scope and scope != "admin":
        reads = method == "GET" or path.endswith(
            ("/lookup", "/search", "/why-not", "/render", "/validate", "/plan", "/diagnose", "/simulate")
        )
        assert scope.endswith(":read") == reads or scope.endswith(":write"), path


@pytest.mark.parametrize(("method", "path", "scope"), NAMED)
def test_nobody_gets_in_without_a_key(db, method, path, scope):
    assert call(method, path).status_code == 401
    assert call(method, path, Authorization="Bearer mh_aaaaaaaa_" + "b" * 43).status_code == 401


@pytest.mark.parametrize(("method", "path", "scope"), [row for row in NAMED if row.values[2]])
def test_a_key_with_every_scope_but_the_needed_one_is_403(api_with, method, path, scope):
    reading = scope.replace(":read", ":write")
    others = [name for name in ALL_SCOPES if name not in (scope, reading)]

    response = call(method, path, Authorization=f"Bearer {api_with(*others).token}")

    assert response.status_code == 403
    assert response.json()["type"] == "/problems/missing-scope"


@pytest.mark.parametrize(("method", "path", "scope"), [row for row in NAMED if row.values[1] not in STREAMS])
def test_a_key_with_just_the_needed_scope_passes_the_door(api_with, method, path, scope):
    response = call(method, path, Authorization=f"Bearer {api_with(*([scope] if scope else ['usage:read'])).token}")

    assert response.status_code != 401
    assert not is_stopped_at_the_door(response), response.content
    assert response.status_code < 500, response.content


@pytest.mark.parametrize("role", ["viewer", "editor", "admin"])
@pytest.mark.parametrize(("method", "path", "scope"), [row for row in NAMED if row.values[1] not in STREAMS])
def test_a_signed_in_person_may_do_what_their_role_may(request, role, method, path, scope):
    response = call(method, path, client=request.getfixturevalue(role))

    may = scope is None or scope in ROLE_SCOPES[role]
    assert is_stopped_at_the_door(response) != may
    assert response.status_code < 500


@pytest.mark.parametrize(("method", "path", "scope"), [row for row in NAMED if row.values[0] != "GET"])
def test_a_cookie_without_the_pages_token_changes_nothing(editor, method, path, scope):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = editor.cookies

    response = call(method, path, client=strict)

    assert response.status_code == 403
    assert response.json()["type"] == "/problems/csrf"
