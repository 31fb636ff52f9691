"""People, roles and passwords."""

import pytest

from memoryhub.common.errors import Invalid
from memoryhub.workspaces.models import Membership, Role
from memoryhub.workspaces.queries import find_principal_of_user, list_workspaces_of
from memoryhub.workspaces.services import (
    LastAdmin,
    NameTaken,
    UnknownTimeZone,
    WeakPassword,
    create_user,
    create_workspace,
    enter_workspace,
    remove_member,
    set_role,
)
from tests.factories import make_user

PASSWORD = "correct horse battery"


def test_a_person_is_created_with_a_role(workspace):
    user = create_user(name="ana", password=PASSWORD, workspace=workspace, role="editor")

    principal = find_principal_of_user(user, None)
    assert (principal.workspace, principal.role) == (workspace, "editor")
    assert principal.allows("memories:write")
    assert not principal.allows("admin")
    assert user.check_password(PASSWORD)


def test_a_viewer_may_only_read(workspace):
    principal = find_principal_of_user(make_user(workspace=workspace, role="viewer"), None)

    assert principal.allows("usage:read")
    assert not principal.allows("usage:write")


@pytest.mark.parametrize("password", ["short", "password123", "1234567890", ""])
def test_weak_passwords_are_refused(workspace, password):
    with pytest.raises(WeakPassword):
        create_user(name="ana", password=password, workspace=workspace, role="editor")


def test_a_taken_name_is_refused_and_leaves_no_half_person(workspace):
    create_user(name="ana", password=PASSWORD, workspace=workspace, role="editor")

    with pytest.raises(NameTaken):
        create_user(name="ana", password=PASSWORD, workspace=workspace, role="admin")
    assert Membership.objects.count() == 1


def test_an_unknown_role_is_refused(workspace):
    with pytest.raises(Invalid):
        create_user(name="ana", password=PASSWORD, workspace=workspace, role="owner")


def test_the_last_admin_stays_one(workspace):
    ana = make_user("ana", workspace=workspace, role="admin")

    with pytest.raises(LastAdmin):
        set_role(workspace=workspace, user=ana, role=Role.VIEWER)
    with pytest.raises(LastAdmin):
        remove_member(workspace=workspace, user=ana)

    make_user("ben", workspace=workspace, role="admin")
    assert set_role(workspace=workspace, user=ana, role=Role.VIEWER).role == "viewer"


@pytest.mark.parametrize("name", ["two words", "", "ä", "a/b", "x" * 65, "a b\n"])
def test_a_workspace_name_is_a_slug(db, name):
    with pytest.raises(Invalid):
        create_workspace(name=name)


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd", "/etc/localtime", "a" * 500, "\x00"])
def test_a_time_zone_is_one_of_the_tz_database(db, zone):
    with pytest.raises(UnknownTimeZone):
        create_workspace(name="w", time_zone=zone)


def test_a_person_of_two_workspaces_enters_the_chosen_one(workspace, other_workspace):
    ana = make_user("ana", workspace=workspace, role="admin")
    set_role(workspace=other_workspace, user=ana, role="viewer")

    assert [w.name for w in list_workspaces_of(ana)] == ["elsewhere", "home"]
    assert find_principal_of_user(ana, workspace.pk).role == "admin"
    assert find_principal_of_user(ana, other_workspace.pk).role == "viewer"
    assert find_principal_of_user(ana, 10**9).workspace == other_workspace
    enter_workspace(workspace=workspace, user=ana)
    assert find_principal_of_user(ana, None).workspace == workspace
