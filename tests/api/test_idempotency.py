"""The same POST with the same Idempotency-Key happens once."""

from datetime import timedelta

import pytest

from memoryhub.audit import services
from memoryhub.audit.models import IdempotentReply
from memoryhub.common import clock
from tests.factories import NOON

NOTE = {"content": "Deploys go out on Tuesdays.", "scope": {"agent": "ops"}}


def test_a_repeat_gets_the_first_answer(api):
    first = api.post("/memories", NOTE, Idempotency_Key="k1")
    again = api.post("/memories", NOTE, Idempotency_Key="k1")

    assert first.status_code == 201
    assert (again.status_code, again.content) == (201, first.content)
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first


def test_another_body_under_the_same_key_is_refused(api):
    api.post("/memories", NOTE, Idempotency_Key="k1")

    assert api.post("/memories", {**NOTE, "content": "other"}, Idempotency_Key="k1").status_code == 422


def test_two_keys_of_api_do_not_share_idempotency_keys(api, api_with):
    api.post("/memories", NOTE, Idempotency_Key="k1")

    other = api_with("memories:write").post("/memories", {**NOTE, "content": "other"}, Idempotency_Key="k1")

    assert other.status_code == 201


def test_a_refusal_is_replayed_too(api):
    refused = api.post("/memories", {"content": ""}, Idempotency_Key="k1")

    assert refused.status_code == 422
    assert api.post("/memories", {"content": ""}, Idempotency_Key="k1").content == refused.content


def test_a_request_in_flight_is_a_409(workspace):
    claim = {"workspace": workspace, "owner": "key:a", "key": "k", "method": "POST", "path": "/x", "body": b""}
    services.claim_idempotency_key(**claim)

    with pytest.raises(services.StillInFlight):
        services.claim_idempotency_key(**claim)


def test_a_claim_of_a_killed_process_can_be_taken_over_after_a_minute(workspace):
    claim = {"workspace": workspace, "owner": "key:a", "key": "k", "method": "POST", "path": "/x", "body": b""}
    with clock.frozen(NOON):
        services.claim_idempotency_key(**claim)

    with clock.frozen(NOON + timedelta(seconds=61)):
        assert services.claim_idempotency_key(**claim) is None


def test_after_a_day_the_key_is_free_again(workspace):
    claim = {"workspace": workspace, "owner": "key:a", "key": "k", "method": "POST", "path": "/x", "body": b""}
    with clock.frozen(NOON):
        services.claim_idempotency_key(**claim)
        reply = services.Reply(201, "application/json", b"{}")
        services.keep_reply(workspace=workspace, owner="key:a", key="k", reply=reply)
        assert services.claim_idempotency_key(**claim) == reply

    with clock.frozen(NOON + timedelta(hours=24, seconds=1)):
        assert services.claim_idempotency_key(**claim) is None


def test_old_replies_are_forgotten(workspace):
    with clock.frozen(NOON):
        services.claim_idempotency_key(workspace=workspace, owner="key:a", key="k", method="POST", path="/x", body=b"")
    with clock.frozen(NOON + timedelta(days=2)):
        assert services.forget_old_replies() == 1
    assert not IdempotentReply.objects.exists()


@pytest.mark.parametrize("key", ["", "x" * 256, "schlüssel"])
def test_a_key_of_the_wrong_form_is_refused(api, key):
    assert api.post("/memories", NOTE, Idempotency_Key=key).status_code == 422


def test_without_a_valid_api_key_nothing_is_claimed(client, db):
    headers = {"Idempotency-Key": "k1", "Authorization": "Bearer mh_bad"}

    assert client.post("/api/v1/memories", {}, content_type="application/json", headers=headers).status_code == 401
    assert not IdempotentReply.objects.exists()
