"""Keys: their form, their proof, their end."""

import re
from datetime import timedelta

import pytest

from memoryhub.common import clock
from memoryhub.workspaces import key_cache, keys
from memoryhub.workspaces.models import ApiKey
from memoryhub.workspaces.principals import ROOM_SCOPES, Binding
from memoryhub.workspaces.queries import find_principal_by_token
from memoryhub.workspaces.services import UnknownScope, create_api_key, note_key_uses, revoke_api_key
from tests.factories import NOON


def test_a_token_has_the_documented_form():
    lookup, token = keys.make_token()

    assert re.fullmatch(r"mh_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", token)
    assert keys.lookup_of(token) == lookup


def test_only_an_hmac_is_stored(workspace):
    key, token = create_api_key(workspace=workspace, name="agent")

    stored = str(ApiKey.objects.filter(pk=key.pk).values().get())
    assert token not in stored
    assert token.rpartition("_")[2] not in stored


def test_without_scopes_it_may_do_all_but_admin(workspace):
    key, _ = create_api_key(workspace=workspace, name="agent")

    assert set(key.scopes) == set(ROOM_SCOPES)


@pytest.mark.parametrize("scopes", [["memories"], ["memories:delete"], [""], []])
def test_unknown_scopes_are_refused(workspace, scopes):
    with pytest.raises(UnknownScope):
        create_api_key(workspace=workspace, name="agent", scopes=scopes)


def test_a_token_proves_its_key_and_carries_the_binding(workspace):
    _, token = create_api_key(workspace=workspace, name="agent", scopes=["cache:read"], binding=Binding(agent="ops"))

    principal, _ = find_principal_by_token(token)

    assert (principal.workspace, principal.label, principal.binding.agent) == (workspace, "agent", "ops")
    assert principal.allows("cache:read")
    assert not principal.allows("cache:write")
    assert not principal.allows("memories:read")


def test_a_write_scope_includes_its_read_scope(workspace):
    _, token = create_api_key(workspace=workspace, name="agent", scopes=["cache:write"])

    assert find_principal_by_token(token)[0].allows("cache:read")


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1] + ("a" if t[-1] != "a" else "b"), lambda t: t + "a", lambda t: t.upper()]
)
def test_a_changed_token_proves_nothing(workspace, change):
    _, token = create_api_key(workspace=workspace, name="agent")

    assert find_principal_by_token(change(token)) is None


def test_an_expired_key_proves_nothing(workspace):
    with clock.frozen(NOON):
        _, token = create_api_key(workspace=workspace, name="agent", expires_at=NOON + timedelta(days=1))
        assert find_principal_by_token(token)
    with clock.frozen(NOON + timedelta(days=1)):
        assert find_principal_by_token(token) is None


def test_a_revoked_key_stops_working_within_five_seconds(workspace, monkeypatch):
    key, token = create_api_key(workspace=workspace, name="agent")
    assert key_cache.authenticate(token)

    revoke_api_key(workspace=workspace, key_id=key.pk)

    later = clock.monotonic() + 5
    monkeypatch.setattr(clock, "monotonic", lambda: later)
    assert key_cache.authenticate(token) is None


def test_a_remembered_key_asks_the_database_once(workspace, django_assert_num_queries):
    _, token = create_api_key(workspace=workspace, name="agent")

    with django_assert_num_queries(1):
        assert key_cache.authenticate(token)
        assert key_cache.authenticate(token)


def test_last_use_is_noted(workspace):
    key, _ = create_api_key(workspace=workspace, name="agent")

    note_key_uses({key.pk: NOON})

    key.refresh_from_db()
    assert key.last_used_at == NOON


def test_a_quiet_key_is_noted_at_once_and_a_busy_one_once_in_a_while(workspace, monkeypatch):
    monkeypatch.setattr(key_cache, "_uses", {})
    monkeypatch.setattr(key_cache, "_noted", {})
    key, token = create_api_key(workspace=workspace, name="agent")
    start = clock.monotonic()

    key_cache.authenticate(token)
    first = key_cache.take_due_uses(start)
    key_cache.authenticate(token)
    soon = key_cache.take_due_uses(start + 1)
    later = key_cache.take_due_uses(start + key_cache.NOTE_EVERY_SECONDS)

    assert (set(first), soon, set(later)) == ({key.pk}, {}, {key.pk})
