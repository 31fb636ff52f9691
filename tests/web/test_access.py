"""Pages open to members of the right role, in the workspace that they chose, and to nobody else."""

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver

from memoryhub.web import urls
from memoryhub.workspaces.models import Membership, User, Workspace
from tests.factories import NOON

OPEN_TO_ALL = {"login", "logout", "preferences"}


def _pages() -> list[URLPattern]:
    return [pattern for pattern in urls.urlpatterns if isinstance(pattern, URLPattern)]


@pytest.mark.parametrize("pattern", _pages(), ids=lambda pattern: str(pattern.name))
def test_every_page_names_the_role_that_it_needs(pattern: URLPattern) -> None:
    if pattern.name in OPEN_TO_ALL:
        return

    view = pattern.callback

    assert getattr(view, "needs_role", None) or getattr(getattr(view, "__wrapped__", None), "needs_role", None)


def test_nobody_is_shown_anything_but_the_sign_in_page(client: Client, db: None) -> None:
    answer = client.get("/settings")

    assert answer.status_code == 302
    assert answer["Location"] == "/login?next=/settings"


def test_an_htmx_request_of_nobody_reloads_into_the_sign_in_page(client: Client, db: None) -> None:
    answer = client.get("/connect/seen", headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/connect"})

    assert answer["HX-Redirect"] == "/login?next=/connect"


def test_a_viewer_gets_403_for_what_admins_do(viewer: Client) -> None:
    assert viewer.get("/settings/keys").status_code == 403
    assert viewer.post("/settings/keys/new", {"name": "x", "scopes": ["memories:read"]}).status_code == 403


def test_a_viewer_gets_403_for_what_editors_do(viewer: Client) -> None:
    assert viewer.post("/jobs/run", {"kind": "housekeeping"}).status_code == 403


def test_somebody_without_a_workspace_is_told_so(client: Client, db: None) -> None:
    client.force_login(User.objects.create(username="newcomer"))

    answer = client.get("/")

    assert answer.status_code == 403
    assert "Ask an admin" in answer.content.decode()


def test_a_person_of_two_workspaces_looks_at_the_one_they_chose(
    admin: Client, workspace: Workspace, other_workspace: Workspace
) -> None:
    person = User.objects.get(username="admin-of-home")
    Membership.objects.create(workspace=other_workspace, user=person, role="viewer", created_at=NOON)

    admin.post("/workspace", {"workspace": "home"})
    assert admin.get("/settings/members").status_code == 200
    admin.post("/workspace", {"workspace": "elsewhere"})

    assert admin.get("/settings/members").status_code == 403


def test_a_workspace_of_others_can_not_be_chosen(viewer: Client, other_workspace: Workspace) -> None:
    assert viewer.post("/workspace", {"workspace": "elsewhere"}).status_code == 404


def test_a_missing_page_is_a_page_with_the_requests_id(viewer: Client) -> None:
    answer = viewer.get("/no/such/page")

    assert answer.status_code == 404
    assert answer["X-Request-Id"] in answer.content.decode()


def test_the_resolver_knows_each_page_once() -> None:
    names = [pattern.name for pattern in _pages()]

    assert len(names) == len(set(names))
    assert get_resolver().reverse_dict


def test_a_form_without_its_token_is_refused_with_a_page_that_says_why(db: None) -> None:
    answer = Client(enforce_csrf_checks=True).post("/login", {"username": "ana", "password": "x"})

    assert answer.status_code == 403
    assert "reload the page" in answer.content.decode()


def test_an_address_for_another_host_is_refused(client: Client, db: None) -> None:
    assert client.get("/login", headers={"Host": "evil.example"}).status_code == 400
