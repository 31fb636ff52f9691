"""Settings: keys are shown once, members keep an admin, and every change is in the log."""

import re

import pytest
from django.test import Client

from memoryhub.audit.models import AuditEvent
from memoryhub.workspaces.models import ApiKey, Membership, User, Workspace
from memoryhub.workspaces.services import create_api_key
from tests.conftest import ApiClient
from tests.factories import make_user

NEW_KEY = {"name": "reviewer", "scopes": ["memories:read"], "expires": "30"}


def _token(page: str) -> str:
    found = re.search(r"mh_\w{8}_[\w-]{43}", page)
    assert found
    return found[0]


def test_a_new_key_is_shown_once_and_works(admin: Client, workspace: Workspace) -> None:
    shown = admin.post("/settings/keys/new", NEW_KEY)

    token = _token(shown.content.decode())
    assert token not in admin.get("/settings/keys").content.decode()
    assert ApiClient(token).get("/memories").status_code != 401
    assert "no-store" in shown["Cache-Control"]


def test_a_key_has_only_the_scopes_that_were_ticked_and_expires(admin: Client, workspace: Workspace) -> None:
    admin.post("/settings/keys/new", {**NEW_KEY, "agent": "main"})

    key = ApiKey.objects.get()
    assert key.scopes == ["memories:read"]
    assert key.expires_at is not None
    assert key.agent == "main"


def test_a_key_without_a_scope_or_a_name_is_refused(admin: Client, workspace: Workspace) -> None:
    assert admin.post("/settings/keys/new", {"name": "x"}).status_code == 422
    assert admin.post("/settings/keys/new", {"scopes": ["memories:read"]}).status_code == 422
    assert admin.post("/settings/keys/new", {"name": "x", "scopes": ["everything"]}).status_code == 422
    assert not ApiKey.objects.exists()


def test_revoking_asks_first_and_is_logged(admin: Client, workspace: Workspace) -> None:
    token = _token(admin.post("/settings/keys/new", NEW_KEY).content.decode())
    key = ApiKey.objects.get()

    assert admin.get(f"/settings/keys/{key.pk}/revoke").status_code == 200
    assert ApiClient(token).get("/memories").status_code != 401
    admin.post(f"/settings/keys/{key.pk}/revoke")

    key.refresh_from_db()
    assert key.revoked_at is not None
    assert AuditEvent.objects.filter(action="revoke_key", subject_id=key.lookup).exists()


def test_a_key_of_another_workspace_can_not_be_revoked(admin: Client, stranger: Client, workspace: Workspace) -> None:
    admin.post("/settings/keys/new", NEW_KEY)

    assert stranger.post(f"/settings/keys/{ApiKey.objects.get().pk}/revoke").status_code == 404


def test_many_keys_come_in_pages_also_behind_a_new_one(admin: Client, workspace: Workspace) -> None:
    for number in range(60):
        create_api_key(workspace=workspace, name=f"key-{number}", scopes=["memories:read"])
    first = admin.get("/settings/keys").content.decode()
    following = re.search(r'href="(/settings/keys\?cursor=[^"]+)"', first)
    assert following
    second = admin.get(following[1]).content.decode()
    made = admin.post("/settings/keys/new", {**NEW_KEY, "name": "newest"}).content.decode()

    shown = [set(re.findall(r">(key-\d+)<", page)) for page in (first, second)]
    assert [len(names) for names in shown] == [50, 10]
    assert not shown[0] & shown[1]
    assert re.search(r'href="/settings/keys\?cursor=', made)


def test_many_members_come_in_pages_by_name(admin: Client, workspace: Workspace) -> None:
    for number in range(60):
        make_user(f"person-{number:02}", workspace=workspace)
    names: list[str] = []
    url: str | None = "/settings/members"
    while url:
        page = admin.get(url).content.decode()
        names += re.findall(r">(person-\d+)-of", page)
        found = re.search(r'href="(/settings/members\?cursor=[^"]+)"', page)
        url = found[1] if found else None

    assert list(dict.fromkeys(names)) == [f"person-{number:02}" for number in range(60)]


def test_a_new_person_needs_a_good_first_password(admin: Client, workspace: Workspace) -> None:
    assert admin.post("/settings/members/new", {"name": "mia", "role": "viewer"}).status_code == 422
    assert (
        admin.post("/settings/members/new", {"name": "mia", "role": "viewer", "password": "short"}).status_code == 422
    )
    assert not User.objects.filter(username="mia").exists()
    admin.post("/settings/members/new", {"name": "mia", "role": "viewer", "password": "a long quiet evening"})

    assert Membership.objects.get(user__username="mia").role == "viewer"


def test_the_last_admin_stays(admin: Client, workspace: Workspace) -> None:
    me = User.objects.get(username="admin-of-home")

    assert admin.post(f"/settings/members/{me.pk}", {"role": "viewer"}).status_code == 409
    assert admin.post(f"/settings/members/{me.pk}", {"remove": "1"}).status_code == 409
    assert Membership.objects.get(user=me).role == "admin"


@pytest.mark.parametrize("role", ["owner", "", "ADMIN"])
def test_a_role_that_does_not_exist_is_refused(admin: Client, viewer: Client, workspace: Workspace, role: str) -> None:
    person = User.objects.get(username="viewer-of-home")

    assert admin.post(f"/settings/members/{person.pk}", {"role": role}).status_code == 422


def test_the_workspaces_zone_is_checked(admin: Client, workspace: Workspace) -> None:
    assert admin.post("/settings/workspace", {"title": "Home", "time_zone": "No/Where"}).status_code == 422
    admin.post("/settings/workspace", {"title": "Home", "time_zone": "Asia/Shanghai"})

    workspace.refresh_from_db()
    assert (workspace.title, workspace.time_zone) == ("Home", "Asia/Shanghai")


def test_hostile_names_are_shown_as_text(admin: Client, workspace: Workspace) -> None:
    admin.post("/settings/keys/new", {**NEW_KEY, "name": '<img src=x onerror="alert(1)">'})

    page = admin.get("/settings/keys").content.decode()

    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
