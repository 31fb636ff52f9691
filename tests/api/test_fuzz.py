"""Requests made at random from the OpenAPI document: no answer is a 5xx, none has a status that is not documented."""

import json
import random
import re
from typing import Any

import pytest
from django.test import Client

from memoryhub.api.app import api as hub_api

DOCUMENT = json.loads(json.dumps(hub_api.get_openapi_schema(), default=str))
METHODS = ("get", "post", "put", "patch", "delete")
STREAMS = {"/api/v1/invalidations/stream"}
OPERATIONS = [
    pytest.param(method, path, id=f"{method.upper()} {path}")
    for path, item in sorted(DOCUMENT["paths"].items())
    for method in METHODS
    if method in item and path not in STREAMS
]
TRIES = 40
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**40, 1.5, -0.0, 1e308, 5e-324,
    "", " ", "a", "main", "x" * 5000, "深色", "🤖", "‮", "%00", "../../etc/passwd", "<script>alert(1)</script>",
    "'; DROP TABLE x; --",
    "2026-11-10T00:00:00Z", "2026-11-10", "0000-00-00", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "nan", "{}", "*", "[",
    [], [None], [[]], {}, {"": None}, {"a": {"b": []}}, [1] * 300, ["a"] * 300,
]  # fmt: skip


def resolve(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def value_for(schema: dict[str, Any], dice: random.Random, depth: int = 0) -> Any:
    """A value of the schema's form most of the time, an odd one otherwise."""
    if depth > 5 or dice.random() < 0.12:
        return dice.choice(ODD)
    schema = resolve(schema)
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return value_for(dice.choice(schema[choice]), dice, depth)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        required = set(schema.get("required", ()))
        given = {
            name: value_for(inner, dice, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or dice.random() < 0.4
        }
        if dice.random() < 0.05:
            given[dice.choice(["extra", "", "id", "workspace"])] = dice.choice(ODD)
        return given
    if kind == "array":
        return [value_for(schema.get("items", {}), dice, depth + 1) for _ in range(dice.choice([0, 1, 1, 2, 3]))]
    if kind == "integer":
        return dice.choice([0, 1, 2, 50, 200, 1000, -1, 2**63])
    if kind == "number":
        return dice.choice([0, 0.5, 1, -1, 1e12])
    if kind == "boolean":
        return dice.choice([True, False])
    if kind == "string":
        return dice.choice([word for word in ODD if isinstance(word, str)])
    return dice.choice(ODD)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def request_for(operation: dict[str, Any], path: str, dice: random.Random) -> tuple[str, bytes, str]:
    """Return (path with query, body, content type)."""
    from urllib.parse import quote, urlencode

    query: list[tuple[str, str]] = []
    for parameter in operation.get("parameters", []):
        value = value_for(parameter.get("schema", {}), dice)
        if parameter["in"] == "path":
            text = as_text(value) or "x"
            path = path.replace("{" + parameter["name"] + "}", quote(text, safe="") if dice.random() < 0.8 else "s1")
        elif parameter["in"] == "query" and dice.random() < 0.6:
            query.append((parameter["name"], as_text(value)))
    path = re.sub(r"{[^}]+}", "s1", path)
    content = operation.get("requestBody", {}).get("content", {})
    body = b""
    if content:
        schema = next(iter(content.values())).get("schema", {})
        body = json.dumps(value_for(schema, dice)).encode()
        if dice.random() < 0.05:
            body = body[: len(body) // 2]
    return f"{path}?{urlencode(query)}" if query else path, body, next(iter(content), "application/json")


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_request_is_answered_by_a_fault_of_ours(api, method, path):
    operation = DOCUMENT["paths"][path][method]
    documented = {int(status) for status in operation["responses"]}
    dice = random.Random(f"{method} {path}")
    client = Client(headers={"Authorization": f"Bearer {api.token}", "If-Match": '"v1"'})

    for _ in range(TRIES):
        address, body, content_type = request_for(operation, path, dice)
        response = client.generic(method.upper(), address, body, content_type=content_type)
        told = f"{method.upper()} {address} {body[:500]!r} -> {response.status_code} {getattr(response, 'content', b'')[:300]!r}"
        if response.status_code == 404 and b"The API has nothing at this address" in response.content:
            continue  # a slash or nothing in a path parameter leads nowhere
        if response.status_code == 405:
            continue
        assert response.status_code < 500, told
        assert response.status_code in documented, told
