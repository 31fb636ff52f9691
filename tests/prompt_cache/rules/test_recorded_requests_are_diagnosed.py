"""The doctor over the ledger: what is kept of a request, which request is the one before, what is reported."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memoryhub.common import clock
from memoryhub.prompt_cache.models import Diagnosis, RequestFingerprint
from memoryhub.prompt_cache.queries.findings import list_advice, look_over
from memoryhub.prompt_cache.queries.sums import Span
from memoryhub.prompt_cache.services.doctor import diagnose_pending, forget_kept_bodies
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace
from tests.prompt_cache.rules.cases import MARK, START, Body, make_body, next_turn, text

ALL_TIME = (START - timedelta(days=1), START + timedelta(days=1))
ALL_DAYS = Span(ALL_TIME[0].date(), ALL_TIME[1].date(), ZoneInfo("UTC"))
SECRET_WORDS = "the moon is made of green cheese"


@pytest.fixture(autouse=True)
def _at_the_start() -> Any:
    with clock.frozen(START):
        yield


def record(
    api: Any, number: int, body: Body | None, *, read: int = 0, write: int = 0, session: str = "s1", **more: Any
) -> None:
    started = START + timedelta(seconds=more.pop("at", 60 * number))
    usage = {
        "input_tokens": 10,
        "output_tokens": 1,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
    }
    report = {
        "message_id": f"m{number}",
        "model": "claude-opus-5-5",
        "session": session,
        "usage": usage,
        "started_at": started.isoformat(),
    }
    answer = api.post("/prompt-cache/usage", report | ({"request": body} if body is not None else {}) | more)
    assert answer.status_code == 201, answer.content


def found(number: int) -> Diagnosis:
    return Diagnosis.objects.get(record__message_id=f"m{number}")


def test_a_request_is_compared_with_the_one_before(api: Any) -> None:
    changed = next_turn(make_body())
    changed["system"][0]["text"] = "You review code at 10:31."
    record(api, 1, make_body(), write=10_000)
    record(api, 2, changed, write=10_200)

    first, second = found(1), found(2)
    assert (first.verdict, first.reported) == ("first", False)
    assert (second.verdict, second.cause, second.path, second.basis) == (
        "miss",
        "system_changed",
        "system[0].text",
        "body",
    )
    assert (second.missed_tokens, second.missed_pico, second.reported) == (10_000, 48_000_000_000, True)
    assert second.previous is not None
    assert second.previous.message_id == "m1"
    assert second.offset == len("You review code")


def test_requests_of_one_batch_are_compared_with_each_other(api: Any) -> None:
    second, third = next_turn(make_body()), next_turn(next_turn(make_body()))
    second["tools"].reverse()
    helper = make_body(system="You write titles.", messages=[{"role": "user", "content": "A title, please"}])
    named = make_body(messages=[{"role": "user", "content": "Else"}]) | {"diagnostics": {"previous_message_id": "m9"}}
    batch = [
        {
            "message_id": f"m{number}",
            "session": session,
            "request": body,
            "started_at": (START + timedelta(seconds=30 * number)).isoformat(),
        }
        for number, session, body in [
            (4, "b", named),
            (3, "a", third),
            (1, "a", make_body()),
            (2, "a", second),
            (9, "c", helper),
            (5, "a", helper),
        ]
    ]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 10_000}

    answer = api.post("/prompt-cache/usage", [{"model": "claude-opus-5-5", "usage": usage} | one for one in batch])

    assert answer.status_code == 201
    assert [(found(number).verdict, found(number).cause) for number in (1, 2, 3, 5)] == [
        ("first", "none"),
        ("miss", "tools_changed"),
        ("miss", "tools_changed"),
        ("first", "none"),
    ]
    assert found(4).previous is None  # m9 began later
    kept = RequestFingerprint.objects.filter(kept_body__isnull=False).values_list("record__message_id", flat=True)
    assert sorted(kept) == ["m3", "m4", "m5", "m9"]


def test_only_hashes_are_kept_after_an_hour(api: Any, workspace: Workspace) -> None:
    body = make_body(system=[text(SECRET_WORDS, cache_control=MARK)])
    record(api, 1, body, write=10_000)
    stored = RequestFingerprint.objects.get()
    assert SECRET_WORDS.encode() not in bytes(stored.packed)
    assert stored.kept_body is not None

    with clock.frozen(START + timedelta(minutes=61)):
        assert forget_kept_bodies() == 1
        changed = next_turn(body)
        changed["system"][0]["text"] = "something else"
        record(api, 2, changed, write=10_100, at=3_000)

    second = found(2)
    assert (second.cause, second.path, second.basis) == ("system_changed", "system[0]", "hashes")
    assert (second.offset, second.kind, second.before, second.after) == (None, "", "", "")


def test_the_body_before_is_let_go_with_the_next_one(api: Any) -> None:
    record(api, 1, make_body(), write=10_000)
    record(api, 2, next_turn(make_body()), read=10_000, write=100)

    kept = RequestFingerprint.objects.filter(kept_body__isnull=False).values_list("record__message_id", flat=True)
    assert list(kept) == ["m2"]


@pytest.mark.parametrize("opted_in", [True, False])
def test_excerpts_are_kept_only_where_the_workspace_says_so(api: Any, workspace: Workspace, opted_in: bool) -> None:
    workspace.settings = {"doctor_excerpts": opted_in}
    workspace.save()
    changed = next_turn(make_body())
    changed["system"][0]["text"] = "You write code."
    record(api, 1, make_body(), write=10_000)
    record(api, 2, changed, write=10_000)

    assert (found(2).before != "") is opted_in
    assert (found(2).after != "") is opted_in


def test_parallel_conversations_of_one_session_are_not_confused(api: Any) -> None:
    helper = make_body(
        system=[text("You write titles.", cache_control=MARK)],
        messages=[{"role": "user", "content": "A title, please"}],
    )
    record(api, 1, make_body(), write=10_000)
    record(api, 2, helper, write=3_000)
    record(api, 3, next_turn(make_body()), read=10_000, write=200)

    assert (found(2).verdict, found(2).cause) == ("first", "none")
    assert (found(3).verdict, found(3).cause) == ("hit", "none")


def test_the_message_that_a_request_names_is_the_one_before(api: Any) -> None:
    other = make_body(messages=[{"role": "user", "content": "Something else"}])
    record(api, 1, make_body(), write=10_000, session="a")
    record(api, 2, other | {"diagnostics": {"previous_message_id": "m1"}}, write=10_000, session="b")

    assert found(2).previous is not None


def test_requests_without_a_session_are_joined_by_their_first_message(api: Any) -> None:
    record(api, 1, make_body(), write=10_000, session="")
    record(api, 2, make_body(messages=[{"role": "user", "content": "Another"}]), write=10_000, session="")
    record(api, 3, next_turn(make_body()), write=10_100, session="", at=400)

    assert found(2).verdict == "first"
    assert (found(3).verdict, found(3).cause) == ("miss", "ttl_expired")


def test_usage_alone_is_diagnosed_and_says_so(api: Any) -> None:
    record(api, 1, None, write=10_000)
    record(api, 2, None, write=10_000, at=900)

    assert (found(2).cause, found(2).basis, found(2).reported) == ("ttl_expired", "usage", True)


def test_many_at_once_are_left_to_a_job(api: Any, workspace: Workspace) -> None:
    def usage(number: int) -> Body:
        started = START + timedelta(seconds=600 * number)
        return {
            "message_id": f"m{number}",
            "model": "claude-opus-5-5",
            "session": "s",
            "started_at": started.isoformat(),
            "usage": {"input_tokens": 5, "cache_creation_input_tokens": 9_000},
        }

    api.post("/prompt-cache/usage", [usage(number) for number in range(40)])
    assert Diagnosis.objects.count() == 0
    assert Job.objects.filter(kind="diagnose").count() == 1

    assert diagnose_pending(workspace=workspace) == 40
    assert diagnose_pending(workspace=workspace) == 0
    assert Diagnosis.objects.filter(cause="ttl_expired").count() == 39


def test_recording_again_changes_no_diagnosis(api: Any) -> None:
    record(api, 1, make_body(), write=10_000)
    record(api, 2, next_turn(make_body()), read=10_000, write=100)
    before = list(Diagnosis.objects.order_by("pk").values())
    record(api, 2, next_turn(make_body()), read=10_000, write=100)

    assert list(Diagnosis.objects.order_by("pk").values()) == before


def test_a_request_that_is_no_messages_body_is_recorded_by_its_usage(api: Any) -> None:
    record(api, 1, {"messages": "nonsense"}, write=10_000)

    assert found(1).basis == "usage"
    assert RequestFingerprint.objects.count() == 0


def test_advice_joins_misses_with_one_cure(api: Any, workspace: Workspace) -> None:
    for session in ("a", "b"):
        base = 10 if session == "a" else 20
        body = make_body()
        record(api, base, body, write=10_000, session=session)
        for step in (1, 2, 3):
            body = next_turn(body, f"turn {step}")
            body["tools"].reverse()
            record(api, base + step, body, write=10_000, session=session)

    [card] = list_advice(workspace, *ALL_TIME)

    assert (card.cause, card.detail, card.path) == ("tools_changed", "reordered", "tools[0]")
    assert (card.misses, card.sessions, card.tokens, card.pico) == (6, 2, 60_000, 6 * 48_000_000_000)
    assert "order" in card.fix


def test_agreement_with_the_provider_is_counted(api: Any, workspace: Workspace) -> None:
    def said(word: str) -> Body:
        return {"cache_miss_reason": {"type": word, "cache_missed_input_tokens": 9}}

    changed = next_turn(make_body())
    changed["system"][0]["text"] = "You write code."
    record(api, 1, make_body(), write=10_000)
    record(api, 2, changed, write=10_000, diagnostics=said("system_changed"))
    record(api, 3, make_body(), write=10_000, session="s2")
    record(api, 4, changed, write=10_000, session="s2", diagnostics=said("tools_changed"))
    asked = next_turn(changed) | {"diagnostics": {"previous_message_id": "m4"}}
    record(api, 5, asked, read=10_000, session="s2", diagnostics=None)

    record(api, 6, None, write=10_000, session="s3")
    record(api, 7, None, write=10_000, session="s3", diagnostics=said("system_changed"))

    overview = look_over(workspace, ALL_DAYS)
    figures = overview.figures
    assert (figures.requests, figures.compared, figures.agreed) == (7, 3, 2)
    assert overview.matrix == {
        ("system_changed", "system_changed"): 1,
        ("system_changed", "tools_changed"): 1,
        ("no_change", "no_change"): 1,
        ("no_bodies", "system_changed"): 1,
    }


def test_a_stranger_sees_nothing(api: Any, other_workspace: Workspace) -> None:
    record(api, 1, make_body(), write=10_000)
    record(api, 2, make_body(system="other"), write=10_000)

    assert look_over(other_workspace, ALL_DAYS).figures.requests == 0
    assert list_advice(other_workspace, *ALL_TIME) == []
