"""The four checks at the API's door: shapes, scopes, hostile bodies, recorded sessions."""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.prompt_cache.rules.cases import HOUR, MARK, Body, make_body, next_turn, text

LONG = "word " * 2_000


def usage(*, read: int = 0, write: int = 0, rest: int = 100) -> Body:
    return {
        "input_tokens": rest,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
        "output_tokens": 5,
    }


def pair() -> Body:
    before, after = make_body(), next_turn(make_body())
    before["system"][0]["text"], after["system"][0]["text"] = "now 10:30", "now 10:31"
    return {
        "previous": {"request": before, "usage": usage(write=4600), "started_at": "2026-11-29T10:00:00Z"},
        "current": {"request": after, "usage": usage(write=4700), "started_at": "2026-11-29T10:00:30Z"},
    }


def test_a_diagnosis_has_the_shape_of_the_contract(api: Any) -> None:
    body = pair()
    body["current"]["diagnostics"] = {
        "cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 4000}
    }

    answer = api.post("/prompt-cache/diagnose", body)

    assert answer.status_code == 200
    found = answer.json()
    assert found | {"before": "", "after": "", "fix": ""} == {
        "verdict": "miss",
        "cause": "system_changed",
        "detail": "edited",
        "path": "system[0].text",
        "offset": 8,
        "kind": "timestamp",
        "before": "",
        "after": "",
        "expected_tokens": 4600,
        "read_tokens": 0,
        "missed_tokens": 4600,
        "missed_usd": "0.02208",
        "provider_reason": "system_changed",
        "agrees": True,
        "also": [],
        "fix": "",
        "basis": "body",
        "estimated": False,
    }
    assert "10:30" in found["before"]
    assert "10:31" in found["after"]
    assert "last marker" in found["fix"]


def test_bare_bodies_and_no_previous_are_taken(api: Any) -> None:
    bare = api.post("/prompt-cache/diagnose", {"previous": make_body(), "current": make_body(model="claude-opus-5")})
    first = api.post(
        "/prompt-cache/diagnose", {"previous": None, "current": {"request": make_body(), "usage": usage(write=4600)}}
    )

    assert bare.json()["cause"] == "model_changed"
    assert (first.json()["verdict"], first.json()["cause"]) == ("first", "none")


def test_history_is_taken_in_any_order(api: Any) -> None:
    def ask(minute: int) -> Body:
        body = make_body(
            messages=[{"role": "user", "content": [text("doc"), text(f"at 10:0{minute}", cache_control=MARK)]}]
        )
        return {"request": body, "usage": usage(write=9000), "started_at": f"2026-11-29T10:0{minute}:00Z"}

    answer = api.post("/prompt-cache/diagnose", {"previous": ask(3), "current": ask(4), "history": [ask(2), ask(1)]})

    assert answer.json()["cause"] == "varying_tail"


def test_a_validation_has_the_shape_of_the_contract(api: Any) -> None:
    body = {
        "model": "claude-opus-4-6",
        "system": [text("word " * 1_800, cache_control=MARK)],
        "messages": [{"role": "user", "content": [text("q", cache_control=HOUR)]}],
    }

    answer = api.post("/prompt-cache/validate", body).json()
    wrapped = api.post("/prompt-cache/validate", {"request": body, "history": [], "batch": False}).json()

    assert answer == wrapped
    assert answer["ok"] is False
    assert [(one["code"], one["path"], one["http"]) for one in answer["errors"]] == [
        ("ttl_order", "messages[0].content[0]", 400)
    ]
    warning = answer["warnings"][0]
    assert (warning["code"], warning["path"], warning["minimum"]) == (
        "below_minimum",
        "system[0]",
        4096,
    )
    assert answer["warnings"][0]["tokens"] == 2250
    assert answer["advice"] == []


def test_a_batch_may_not_prewarm(api: Any) -> None:
    answer = api.post("/prompt-cache/validate", {"request": {"max_tokens": 0, "messages": []}, "batch": True}).json()

    assert [one["code"] for one in answer["errors"]] == ["prewarm_illegal"]


def test_a_plan_has_the_shape_of_the_contract(api: Any) -> None:
    body = {
        "model": "claude-opus-5-5",
        "max_tokens": 5,
        "system": [text(LONG)],
        "messages": [{"role": "user", "content": "hi"}],
    }

    answer = api.post("/prompt-cache/plan", body).json()

    assert answer["body"]["system"][0] == text(LONG, cache_control=HOUR)
    assert answer["body"]["messages"] == body["messages"]
    marker = answer["markers"][0]
    assert (marker["path"], marker["ttl"], marker["break_even_reads"]) == ("system[0]", "1h", 2)
    assert marker["why"]


def test_a_plan_keeps_the_order_of_keys(api: Any) -> None:
    body = {
        "messages": [{"content": "hi", "role": "user"}],
        "zeta": 1,
        "system": [{"text": LONG, "type": "text"}],
        "model": "claude-opus-5-5",
    }

    answer = json.loads(api.post("/prompt-cache/plan", body).content)

    assert [key for key in answer["body"] if key != "cache_control"] == list(body)
    assert list(answer["body"]["system"][0]) == ["text", "type", "cache_control"]


def requests_of(gaps: list[int]) -> list[Body]:
    body, at, items, cached = make_body(), 0, [], 0
    for gap in [0, *gaps]:
        at += gap
        size = 10_000 + 500 * len(items)
        hit = bool(items) and gap <= 300
        billed = usage(read=cached if hit else 0, write=size - (cached if hit else 0), rest=0)
        items.append({"request": body, "usage": billed, "started_at": f"2026-11-29T10:{at // 60:02}:{at % 60:02}Z"})
        body, cached = next_turn(body, f"turn {len(items)}"), size
    return items


def test_requests_sent_along_are_replayed(api: Any) -> None:
    answer = api.post("/prompt-cache/simulate", {"requests": requests_of([60, 60, 600, 60])})

    assert answer.status_code == 200
    found = answer.json()
    assert found["calibration_error"] == 0
    assert [one["plan"] for one in found["plans"]] == ["none", "auto-5m", "1h", "mixed", "keepalive", "actual"]
    assert all(Decimal(one["cost_usd"]) > 0 and Decimal(one["regret_usd"]) >= 0 for one in found["plans"])
    assert min(Decimal(one["regret_usd"]) for one in found["plans"]) == 0


@pytest.mark.parametrize("with_bodies", [True, False])
def test_a_recorded_session_is_replayed(api: Any, with_bodies: bool) -> None:
    for number, item in enumerate(requests_of([60, 60, 600])):
        record = {
            "message_id": f"m{number}",
            "model": "claude-opus-5-5",
            "session": "s1",
            "usage": item["usage"],
            "started_at": item["started_at"],
        }
        assert (
            api.post("/prompt-cache/usage", record | ({"request": item["request"]} if with_bodies else {})).status_code
            == 201
        )

    found = api.post("/prompt-cache/simulate", {"session": "s1", "plans": ["auto-5m", "1h", "actual"]}).json()

    assert found["requests"] == 4
    assert found["basis"] == ("requests" if with_bodies else "usage")
    assert found["calibration_error"] == 0
    by_plan = {one["plan"]: one for one in found["plans"]}
    assert by_plan["actual"]["cost_usd"] == by_plan["auto-5m"]["cost_usd"]
    assert by_plan["actual"]["hit_rate"] == by_plan["auto-5m"]["hit_rate"]


def test_a_strangers_session_is_not_there(api: Any, stranger_api: Any) -> None:
    api.post(
        "/prompt-cache/usage",
        {"message_id": "m", "model": "claude-opus-5-5", "session": "s1", "usage": usage(write=9000)},
    )

    assert api.post("/prompt-cache/simulate", {"session": "s1"}).status_code == 200
    assert stranger_api.post("/prompt-cache/simulate", {"session": "s1"}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"session": "s", "requests": [{"request": {"messages": []}}]},
        {"session": "s", "plans": ["best"]},
        {"session": "s", "plans": []},
        {"session": ""},
        {"requests": []},
    ],
)
def test_what_can_not_be_replayed_is_refused(api: Any, body: Body) -> None:
    assert api.post("/prompt-cache/simulate", body).status_code == 422


HOSTILE: list[Any] = [
    None, [], "x", 5, {}, {"messages": 5}, {"request": 5}, {"request": None}, {"request": []}, {"messages": [None]}, {"request": {"messages": []}, "history": "x"},
    {"request": {"messages": []}, "history": [5]}, {"request": {"messages": []}, "history": [{"request": {"messages": [5]}}]}, {"messages": [], "model": {"a": 1}},
    {"request": {"messages": []}, "usage": 5}, {"request": {"messages": []}, "usage": {"input_tokens": "x"}}, {"request": {"messages": []}, "usage": {"input_tokens": -5}},
    {"request": {"messages": []}, "started_at": "yesterday"}, {"request": {"messages": []}, "started_at": 5}, {"request": {"messages": []}, "started_at": "0001-01-01T00:00:00+23:00"},
    {"request": {"messages": []}, "history": [{"request": {"messages": []}}] * 501},
]  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE)
@pytest.mark.parametrize("path", ["validate", "plan"])
def test_a_hostile_body_is_a_422(api: Any, path: str, body: Any) -> None:
    answer = api.post(f"/prompt-cache/{path}", body)

    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")


@pytest.mark.parametrize("body", HOSTILE)
def test_a_hostile_pair_is_a_422(api: Any, body: Any) -> None:
    answers = [
        api.post("/prompt-cache/diagnose", {"previous": body, "current": {"request": make_body()}}),
        api.post("/prompt-cache/diagnose", {"previous": {"request": make_body()}, "current": body}),
    ]

    assert {answer.status_code for answer in answers} <= {200, 422}
    assert answers[1].status_code == 422 or (isinstance(body, dict) and "history" in body)


def test_a_deeply_nested_body_is_refused(api: Any) -> None:
    deep = b'{"messages":[{"role":"user","content":[' + b'{"type":"x","content":[' * 300 + b"]}" * 300 + b"]}]}"

    assert api.post("/prompt-cache/validate", deep).status_code == 422


def test_the_checks_need_the_usage_scope(api_with: Any) -> None:
    reader, other = api_with("usage:read"), api_with("memories:write")

    assert reader.post("/prompt-cache/validate", make_body()).status_code == 200
    assert other.post("/prompt-cache/validate", make_body()).status_code == 403


def test_the_speed_may_be_told_by_the_response_alone(api: Any) -> None:
    before = {"request": make_body(), "usage": usage(write=9000) | {"speed": "standard"}}
    after = {"request": next_turn(make_body()), "usage": usage(write=9000) | {"speed": "fast"}}

    assert api.post("/prompt-cache/diagnose", {"previous": before, "current": after}).json()["cause"] == "speed_changed"
