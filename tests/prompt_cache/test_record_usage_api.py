"""POST /prompt-cache/usage: what the ledger takes, and what it says about it."""

from typing import Any

import pytest

from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.services.rollups import check_rollups
from tests.conftest import ApiClient
from tests.prompt_cache.makers import make_report, make_usage, plain_usage

USAGE = "/prompt-cache/usage"
M = 1_000_000


def record(api: ApiClient, *reports: dict[str, Any]) -> dict[str, Any]:
    response = api.post(USAGE, list(reports))
    assert response.status_code == 201, response.content
    return response.json()


def test_one_response_is_priced(api: ApiClient) -> None:
    response = api.post(USAGE, make_report())

    assert response.status_code == 201
    assert response.json() == {
        "created": 1,
        "updated": 0,
        "unchanged": 0,
        "items": [
            {
                "message_id": "msg_1",
                "cost_usd": "0.184012",
                "net_saving_usd": "0.036000",
                "unpriced": False,
                "flags": [],
            }
        ],
    }


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        ("claude-opus-5-5", {"input_tokens": M, "inference_geo": "us"}, "4.400000"),
        ("claude-opus-5-5", {"input_tokens": M, "cache_read_input_tokens": M, "speed": "fast"}, "8.400000"),
        ("claude-opus-5-5", {"input_tokens": M, "cache_read_input_tokens": M, "service_tier": "batch"}, "2.100000"),
        ("us.anthropic.claude-opus-5-5", {"input_tokens": M}, "4.400000"),
        ("anthropic/claude-opus-5-5[1m]", {"input_tokens": M}, "4.000000"),
        ("claude-haiku-5-5", {"cache_read_input_tokens": 150_000, "output_tokens": M}, "2.507500"),
        (
            "claude-opus-5-5",
            {
                "cache_creation_input_tokens": M,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 400_000},
            },
            "6.200000",
        ),
        (
            "claude-sonnet-4-6",
            {"input_tokens": 3, "cache_creation_input_tokens": 12_304, "output_tokens": 550},
            "0.054399",
        ),
        ("claude-opus-5-5", {"input_tokens": M, "server_tool_use": {"web_search_requests": 2}}, "4.020000"),
        (
            "claude-haiku-4-5",
            {
                "input_tokens": M,
                "iterations": [
                    {"type": "compaction", "input_tokens": M},
                    {"type": "advisor_message", "model": "claude-opus-5-5", "input_tokens": M},
                ],
            },
            "6.000000",
        ),
    ],
)
def test_costs_to_the_cent(api: ApiClient, model: str, usage: dict[str, Any], cost: str) -> None:
    (item,) = record(api, make_report(model=model, usage=usage))["items"]

    assert item["cost_usd"] == cost


def test_the_inclusive_convention_costs_the_same_as_the_native_one(api: ApiClient) -> None:
    native = {"input_tokens": 5, "cache_read_input_tokens": 128_955, "cache_creation_input_tokens": 1_253}
    inclusive = {**native, "input_tokens": 130_213}

    items = record(
        api,
        make_report("msg_1", usage=native, convention="anthropic"),
        make_report("msg_2", usage=inclusive, convention="inclusive"),
    )["items"]

    assert items[0]["cost_usd"] == items[1]["cost_usd"]
    first, second = UsageRecord.objects.order_by("message_id")
    assert (first.input_tokens, first.cache_write_5m_tokens) == (second.input_tokens, second.cache_write_5m_tokens)


def test_sending_again_changes_nothing(api: ApiClient) -> None:
    record(api, make_report())
    before = UsageRecord.objects.values().get()

    again = record(api, make_report())

    assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, 1)
    assert again["items"][0]["cost_usd"] == "0.184012"
    assert UsageRecord.objects.values().get() == before


def test_a_stream_reported_in_steps_ends_at_its_last_numbers(api: ApiClient, workspace: Any) -> None:
    steps = [make_report(usage=make_usage(output_tokens=number)) for number in (1, 5000, 1)]
    for step in steps:
        record(api, step)

    assert UsageRecord.objects.get().output_tokens == 5000
    assert check_rollups(workspace=workspace) == []


def test_a_repeat_in_one_batch_counts_once(api: ApiClient) -> None:
    answer = record(api, make_report(), make_report(), make_report("msg_2"))

    assert (answer["created"], [item["message_id"] for item in answer["items"]]) == (2, ["msg_1", "msg_1", "msg_2"])


def test_an_unknown_model_has_tokens_and_no_dollars(api: ApiClient) -> None:
    (item,) = record(api, make_report(model="claude-opus-9"))["items"]

    assert (item["unpriced"], item["cost_usd"], item["net_saving_usd"]) == (True, None, None)


@pytest.mark.parametrize(
    ("usage", "flag"),
    [
        ({"input_tokens": -1, "output_tokens": 5}, "negative_number"),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}}, "part_exceeds_total"),
        ({"input_tokens": 10**12}, "implausible_number"),
        ({"input_tokens": 10**10, "output_tokens": 10**10}, "implausible_number"),
    ],
)
def test_what_cannot_be_right_is_stored_flagged_and_left_out(api: ApiClient, usage: dict[str, Any], flag: str) -> None:
    (item,) = record(api, make_report(usage=usage))["items"]
    report = api.get("/prompt-cache/report?group_by=model").json()

    assert flag in item["flags"]
    assert (item["cost_usd"], item["unpriced"]) == (None, False)
    assert UsageRecord.objects.count() == 1
    assert (report["rows"], report["excluded"], report["totals"]["requests"]) == ([], 1, 0)


def test_a_split_that_is_missing_is_flagged(api: ApiClient) -> None:
    usage = make_usage()
    del usage["cache_creation"]

    assert record(api, make_report(usage=usage))["items"][0]["flags"] == ["split_missing"]


def test_the_request_id_names_a_response_without_a_message_id(api: ApiClient) -> None:
    report = make_report(request_id="req_7")
    del report["message_id"]

    assert record(api, report)["items"][0]["message_id"] == "req_7"
    assert record(api, report)["unchanged"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "model"),
        ([], ""),
        ([{}], "model"),
        ("text", ""),
        (make_report(usage={}), "usage"),
        (make_report(usage=None), "usage"),
        (make_report(usage={"input_tokens": "5"}), "usage.input_tokens"),
        (make_report(usage={"input_tokens": 1.5}), "usage.input_tokens"),
        (make_report(usage={"input_tokens": 10**40}), "usage.input_tokens"),
        (make_report(usage={"input_tokens": True}), "usage.input_tokens"),
        (make_report(model=""), "model"),
        (make_report(model=None), "model"),
        (make_report(message_id=None), "message_id"),
        (make_report(message_id="m" * 201), "message_id"),
        (make_report(started_at="yesterday"), "started_at"),
        (make_report(started_at="0001-01-01T00:00:00Z"), "started_at"),
        (make_report(convention="other"), "convention"),
        (make_report(surprise=1), "surprise"),
        ([make_report(str(n)) for n in range(1001)], ""),
    ],
)
def test_bodies_that_break_a_rule_are_refused_whole(api: ApiClient, body: Any, field: str) -> None:
    response = api.post(USAGE, body)

    assert response.status_code == 422
    assert field in str(response.json()["errors"])
    assert not UsageRecord.objects.exists()


def test_one_bad_report_refuses_the_batch_and_says_which(api: ApiClient) -> None:
    response = api.post(USAGE, [make_report("msg_1"), make_report("msg_2", usage={"input_tokens": "x"})])

    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "1.usage.input_tokens"
    assert not UsageRecord.objects.exists()


def test_keys_need_the_scope_and_a_bound_key_stays_in_its_place(api_with: Any) -> None:
    from memoryhub.workspaces.principals import Binding

    reader = api_with("usage:read")
    bound = api_with("usage:write", binding=Binding(project="web"))

    assert reader.post(USAGE, make_report()).status_code == 403
    assert bound.post(USAGE, make_report(project="")).status_code == 201
    assert bound.post(USAGE, make_report("msg_2", project="other")).status_code == 403
    assert UsageRecord.objects.get().project == "web"


def test_the_stranger_sees_nothing_and_may_use_the_same_ids(api: ApiClient, stranger_api: ApiClient) -> None:
    record(api, make_report())

    assert stranger_api.get("/prompt-cache/report").json()["rows"] == []
    assert record(stranger_api, make_report(usage=plain_usage(M)))["created"] == 1
    assert api.get("/prompt-cache/report").json()["totals"]["cost_usd"] == "0.184012"
