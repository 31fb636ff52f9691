"""Prices and the decay policy hold for the whole workspace: who is bound to a part of it may not touch them."""

import json
from typing import Any

import pytest
from django.test import Client

from memoryhub.workspaces.principals import Binding
from tests.conftest import ApiClient

PRICE = {"model": "claude-opus-9", "input_usd": "7", "output_usd": "35"}
OF_EVERYBODY = [
    ("PUT", "/prompt-cache/prices", PRICE),
    ("PUT", "/prompt-cache/prices?dry_run=true", PRICE),
    ("PUT", "/memories/policy", {"factor": 0.9}),
    ("PUT", "/memories/policy", {"factor": 0.9, "dry_run": True}),
    ("POST", "/memories/decay", {"dry_run": True}),
    ("POST", "/memories/decay", {"dry_run": False}),
]


@pytest.mark.parametrize(("method", "path", "body"), OF_EVERYBODY)
@pytest.mark.parametrize("binding", [Binding(agent="a"), Binding(user="u"), Binding(project="p")], ids=str)
def test_a_bound_key_is_refused(api_with: Any, method: str, path: str, body: dict[str, Any], binding: Binding) -> None:
    bound = api_with("memories:write", "usage:write", "admin", binding=binding)
    free = api_with("memories:write", "usage:write")

    refused = bound.call(method, path, body)

    assert (refused.status_code, refused.json()["type"].rsplit("/")[-1]) == (403, "outside-binding")
    assert free.call(method, path, body).status_code == 200


def put_by_cookie(client: Client, path: str, body: Any) -> int:
    return client.put(f"/api/v1{path}", json.dumps(body), content_type="application/json").status_code


def test_people_set_prices_by_the_api_as_on_the_page_only_as_admins(editor: Client, admin: Client) -> None:
    assert put_by_cookie(editor, "/prompt-cache/prices", PRICE) == 403
    assert put_by_cookie(admin, "/prompt-cache/prices", PRICE) == 200
    assert put_by_cookie(editor, "/memories/policy", {"factor": 0.9}) == 200


def test_prices_are_taken_back_by_whoever_may_set_them(
    api: ApiClient, api_with: Any, editor: Client, admin: Client
) -> None:
    change = api.put("/prompt-cache/prices", PRICE).json()["change_set"]
    path = f"/changes/{change}/revert"
    bound = api_with("usage:write", binding=Binding(project="web"))

    assert bound.post(path).status_code == 403
    assert editor.post(f"/api/v1{path}", {}, content_type="application/json").status_code == 403
    assert admin.post(f"/api/v1{path}", {}, content_type="application/json").status_code == 200
