"""Completing the OpenAPI document: the problem body, and every status that an operation can answer with."""

import re
from typing import Any

from ninja import NinjaAPI
from ninja.constants import NOT_SET

PROBLEM: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457 problem details.",
    "required": ["type", "title", "status", "detail", "errors", "request_id"],
    "properties": {
        "type": {"type": "string", "example": "/problems/not-found"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
        "request_id": {"type": "string"},
    },
}
STATUSES = {
    "400": "The body or a parameter can't be parsed; `errors` has line and column.",
    "401": "No key, or one that is not valid.",
    "403": "The key lacks the scope that this needs.",
    "404": "No such thing in this workspace.",
    "409": "The state has moved on, or the request is still in flight.",
    "412": "The version in If-Match is not the current one.",
    "413": "The body is larger than this path takes.",
    "422": "It breaks a rule; `errors` names the fields.",
    "428": "If-Match is missing.",
    "429": "Too often; Retry-After says when to come back.",
    "500": "A fault of the hub.",
    "503": "Busy or out of reach; Retry-After says when to come back.",
    "507": "The disk is full.",
}
ALWAYS = ("400", "401", "403", "404", "413", "422", "429", "500", "503")
BY_METHOD = {
    "post": ("409", "412", "428", "507"),
    "put": ("409", "412", "507"),
    "patch": ("409", "412", "428", "507"),
    "delete": ("409", "412", "428", "507"),
}
METHODS = ("get", "post", "put", "patch", "delete")


def complete(document: dict[str, Any], api: NinjaAPI) -> dict[str, Any]:
    """Return the document with the problem schema, all statuses, and the scope that each operation needs."""
    document["components"].setdefault("schemas", {})["Problem"] = PROBLEM
    scopes = scopes_by_operation(api)
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                _complete_operation(item[method], method, scopes.get((method.upper(), path)))
    return document


def _complete_operation(operation: dict[str, Any], method: str, scope: str | None) -> None:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses = operation["responses"] = {str(status): body for status, body in operation["responses"].items()}
    for status in (*ALWAYS, *BY_METHOD.get(method, ())):
        responses.setdefault(status, {"description": STATUSES[status], "content": content})
    if scope:
        operation["x-scope"] = scope
        operation["description"] = f"{operation.get('description', '')}\n\nNeeds the scope `{scope}`.".strip()


def scopes_by_operation(api: NinjaAPI) -> dict[tuple[str, str], str | None]:
    """Return {(method, path): scope} over all operations."""
    found = {}
    for bound in api._get_bound_routers():
        for path, view in bound.path_operations.items():
            for operation in view.operations:
                auth = operation.auth_param
                scope = getattr(auth, "scope", None) if auth is not NOT_SET else None
                for method in operation.methods:
                    full = re.sub(r"/{2,}", "/", f"/api/v1/{path}")
                    found[method, re.sub(r"{[a-z]+:", "{", full)] = scope
    return found
