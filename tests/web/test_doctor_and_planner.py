"""The doctor's and the planner's pages: figures, addresses, CSV, pasted requests, hostile text."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from memoryhub.common import clock
from memoryhub.prompt_cache.queries import findings
from memoryhub.prompt_cache.services.spool import count_loss, spool_folder
from tests.prompt_cache.rules.cases import MARK, make_body, next_turn, text

LONG = "word " * 3_000


def fill(api: Any, sessions: int = 2, *, session: str = "s{}", path_text: str = "You review code.") -> None:
    """Sessions of three requests each; the tools come in another order in the second, a pause precedes the third."""
    now = clock.now()
    for number in range(sessions):
        body, at = make_body(system=[text(path_text, cache_control=MARK)]), now - timedelta(hours=3, minutes=number)
        for turn, gap in enumerate((0, 60, 900)):
            at += timedelta(seconds=gap)
            body = next_turn(body, f"turn {turn}") if turn else body
            if turn == 1:
                body["tools"].reverse()
            usage = {
                "input_tokens": 5,
                "output_tokens": 9,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 40_000,
            }
            report = {
                "message_id": f"{session}{number}{turn}",
                "model": "claude-opus-5-5",
                "session": session.format(number),
                "usage": usage,
            }
            answer = api.post("/prompt-cache/usage", report | {"started_at": at.isoformat(), "request": body})
            assert answer.status_code == 201


def test_the_doctor_shows_misses_advice_and_causes(viewer: Client, api: Any) -> None:
    fill(api)

    page = viewer.get("/doctor").content.decode()

    assert page.count("Tools changed") >= 3
    assert "tools[0]" in page
    assert "Sort the tools before sending" in page
    assert "$0.77" in page  # 4 misses of 40,000 (1.25 - 0.05) 4


def test_of_very_many_misses_advice_looks_at_the_newest_and_says_so(
    viewer: Client, api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(api)
    every = viewer.get("/doctor").context
    monkeypatch.setattr(findings, "LOOKED_AT", 1)
    newest = viewer.get("/doctor").context

    assert every["advice_note"] == ""
    assert "newest 1 misses" in newest["advice_note"]
    assert len(newest["cards"]) == 1 < len(every["cards"])
    assert newest["causes"] == every["causes"]


def test_the_address_narrows_and_orders(viewer: Client, api: Any) -> None:
    fill(api)

    one = viewer.get("/doctor?cause=ttl_expired&order=time").content.decode()
    misses = one[one.index('id="misses"') :]

    assert "Lifetime over" in misses
    assert "tools[0]" not in misses.split("</table>")[0]
    assert viewer.get("/doctor?cause=nonsense&order=nonsense&session=%00&cursor=zzz&range=x").status_code in (200, 422)


def test_the_doctors_csv_has_the_same_rows_and_no_formulas(viewer: Client, api: Any) -> None:
    fill(api, 1, session="=1+1")

    answer = viewer.get("/doctor?format=csv")

    assert answer["Content-Type"].startswith("text/csv")
    rows = answer.content.decode().splitlines()
    assert rows[0].startswith("# time zone")
    assert len(rows) == 4
    assert all(",'=1+1," in row for row in rows[2:])


def test_empty_pages_teach(viewer: Client) -> None:
    assert "No misses in this range" in viewer.get("/doctor").content.decode()
    assert "No session has usage yet" in viewer.get("/planner").content.decode()


def test_pasted_requests_are_diagnosed_and_validated(viewer: Client) -> None:
    before, after = make_body(), next_turn(make_body())
    before["system"][0]["text"], after["system"][0]["text"] = f"10:31 {LONG}", f"10:32 {LONG}"
    after["system"].append(text("x", cache_control={"type": "ephemeral", "ttl": "1h"}))

    answer = viewer.post("/doctor/check", {"previous": json.dumps(before), "current": json.dumps(after)})

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "System prompt changed" in page
    assert "system[0].text" in page
    assert "ttl_order" in page
    assert "Move the clock behind the last marker" in page


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "{",
        "[]",
        '"x"',
        "5",
        "{}",
        '{"messages": 5}',
        "[" * 5_000,
        '{"messages":[{"role":"user","content":"\\ud800"}]}',
    ],
)
def test_what_is_no_request_is_said_beside_the_field(viewer: Client, pasted: str) -> None:
    for path, field in (("/doctor/check", "current"), ("/planner/plan", "body")):
        answer = viewer.post(path, {field: pasted})

        assert answer.status_code in (200, 422)
        if answer.status_code == 422:
            assert "is-danger" in answer.content.decode() or "is-bad" in answer.content.decode()


def test_markup_in_a_request_stays_text(viewer: Client, api: Any) -> None:
    evil = "<script>alert(1)</script>"
    body = make_body(system=[text(evil + LONG, cache_control=MARK)], model=evil)
    page = viewer.post(
        "/doctor/check", {"previous": json.dumps(body), "current": json.dumps(next_turn(body) | {"system": evil})}
    )
    planned = viewer.post("/planner/plan", {"body": json.dumps(body)})

    assert evil not in page.content.decode()
    assert evil not in planned.content.decode()


def test_the_planner_compares_plans(viewer: Client, api: Any) -> None:
    fill(api, 1)

    page = viewer.get("/planner?session=s0").content.decode()

    for name in ("No caching", "Automatic, 5 minutes", "Automatic, 1 hour", "Mixed", "Keep-alive", "As sent"):
        assert name in page
    assert page.count("cheapest") >= 1
    assert "calibration error" in page


def test_the_planners_csv(viewer: Client, api: Any) -> None:
    fill(api, 1)

    rows = viewer.get("/planner?session=s0&format=csv").content.decode().splitlines()

    assert [row.split(",")[0] for row in rows[2:]] == ["none", "auto-5m", "1h", "mixed", "keepalive", "actual"]


def test_an_unknown_session_is_said(viewer: Client, stranger: Client, api: Any) -> None:
    fill(api, 1)

    assert viewer.get("/planner?session=nobody").status_code == 404
    assert stranger.get("/planner?session=s0").status_code == 404


def test_a_pasted_request_gets_its_markers(viewer: Client) -> None:
    page = viewer.post("/planner/plan", {"body": json.dumps(make_body(system=[text(LONG)]))}).content.decode()

    assert "cache_control" in page
    assert "Reads to pay off" in page


def test_the_number_of_queries_does_not_grow_with_the_rows(
    viewer: Client, api: Any, django_assert_max_num_queries: Any
) -> None:
    fill(api, 12)

    for path in ("/doctor", "/planner?session=s0"):
        viewer.get(path)
        with django_assert_max_num_queries(25):
            assert viewer.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/doctor", "/planner"])
def test_the_pages_ask_strangers_to_sign_in(path: str, db: Any) -> None:
    assert Client().get(path).status_code == 302


def test_an_admin_switches_excerpts_and_off_removes_them(admin: Client, editor: Client, api: Any) -> None:
    assert editor.post("/doctor/excerpts", {"keep": "yes"}).status_code == 403
    assert admin.post("/doctor/excerpts", {"keep": "yes"}).status_code == 302
    fill(api, 1)
    assert "<ins>" in admin.get("/doctor").content.decode()

    admin.post("/doctor/excerpts", {"keep": "no"})

    page = admin.get("/doctor").content.decode()
    assert "<ins>" not in page
    assert "only hashes and lengths are kept" in page


def test_lost_usage_is_said_on_the_doctor_and_the_status_page(admin: Client, settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path
    assert "all recorded" in admin.get("/status").content.decode()
    count_loss(spool_folder(), 3)

    assert "3 responses that went through the proxy could not be recorded" in admin.get("/doctor").content.decode()
    assert "3 responses" in admin.get("/status").content.decode()
    assert "memoryhub_proxy_lost_records 3.0" in Client().get("/metrics").content.decode()
