"""The cast: a workspace with its owner, editor and viewer, an agent with a key, and a stranger from another workspace."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from memoryhub.long_term_memory.services import write_limit
from memoryhub.session_cache.services import usage
from memoryhub.workspaces import key_cache
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal, command_principal
from memoryhub.workspaces.services import create_api_key
from tests.factories import make_user, make_workspace

# A busy machine makes examples slowly; that is no fault of a test.
hypothesis_settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("patient")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of the pages, and those that start processes of their own: they bring their own database.

    What says something about the other kind of database is left out.
    """
    elsewhere = [item for item in items if any(m.args[0] != connection.vendor for m in item.iter_markers("only_on"))]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in set(elsewhere)]
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)
        names = set(getattr(item, "fixturenames", ()))
        used = {getattr(value, "__module__", "") for value in vars(getattr(item, "module", object)).values()}
        if names & {"live_hub", "hub_process"} or "tests.live" in used:
            item.add_marker(pytest.mark.live)


@dataclass
class ApiClient:
    """Talks to /api/v1 with a key; `body` is sent as JSON, bytes as they are."""

    token: str

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        content_type = headers.pop("content_type", "application/json")
        return Client().generic(
            method,
            f"/api/v1{path}",
            data,
            content_type=content_type,
            headers={
                "Authorization": f"Bearer {self.token}",
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)

    def put(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("PUT", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("PATCH", path, body, **headers)

    def delete(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("DELETE", path, body, **headers)


@pytest.fixture(autouse=True)
def _forget_between_tests() -> Iterator[None]:
    key_cache.forget_all()
    write_limit.forget_all()
    usage.forget_all()
    cache.clear()
    yield
    key_cache.forget_all()


@pytest.fixture
def workspace(db: Any) -> Workspace:
    return make_workspace("home")


@pytest.fixture
def other_workspace(db: Any) -> Workspace:
    return make_workspace("elsewhere")


@pytest.fixture
def owner(workspace: Workspace) -> Principal:
    return command_principal(workspace, "owner")


@pytest.fixture
def api_with(workspace: Workspace) -> Callable[..., ApiClient]:
    """A client whose key has just these scopes."""

    def make(*scopes: str, **options: Any) -> ApiClient:
        return ApiClient(create_api_key(workspace=workspace, name="agent", scopes=scopes or None, **options)[1])

    return make


@pytest.fixture
def api(api_with: Callable[..., ApiClient]) -> ApiClient:
    return api_with("memories:write", "cache:write", "usage:write", "admin")


@pytest.fixture
def stranger_api(other_workspace: Workspace) -> ApiClient:
    return ApiClient(create_api_key(workspace=other_workspace, name="stranger")[1])


def _signed_in(workspace: Workspace, role: str) -> Client:
    client = Client()
    client.force_login(make_user(role, workspace=workspace, role=role))
    return client


@pytest.fixture
def viewer(workspace: Workspace) -> Client:
    return _signed_in(workspace, "viewer")


@pytest.fixture
def editor(workspace: Workspace) -> Client:
    return _signed_in(workspace, "editor")


@pytest.fixture
def admin(workspace: Workspace) -> Client:
    return _signed_in(workspace, "admin")


@pytest.fixture
def stranger(other_workspace: Workspace) -> Client:
    return _signed_in(other_workspace, "admin")
