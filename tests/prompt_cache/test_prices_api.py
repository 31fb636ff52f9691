"""GET and PUT /prompt-cache/prices: reading the book, changing it, and pricing the ledger anew."""

from typing import Any

import pytest

from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.jobs.tasks import run_now
from memoryhub.prompt_cache.models import Price, UsageRecord
from memoryhub.prompt_cache.services import repricing
from memoryhub.prompt_cache.services.rollups import check_rollups
from memoryhub.work.models import Job
from tests.conftest import ApiClient
from tests.prompt_cache.makers import make_report, plain_usage

M = 1_000_000
PRICES = "/prompt-cache/prices"
NEW = {"model": "claude-opus-9", "input_usd": "7", "output_usd": "35"}


@pytest.fixture
def filled(api: ApiClient) -> ApiClient:
    reports = [
        make_report("m1", model="claude-opus-9", usage=plain_usage(M)),
        make_report("m2", model="claude-opus-9-20261101", usage=plain_usage(M), started_at="2026-11-20T00:00:00Z"),
        make_report("m3", usage=plain_usage(M)),
    ]
    assert api.post("/prompt-cache/usage", reports).status_code == 201
    return api


def total(api: ApiClient) -> str:
    return api.get("/prompt-cache/report").json()["totals"]["cost_usd"]


def test_the_book_lists_every_price_and_the_models_without_one(filled: ApiClient) -> None:
    body = filled.get(PRICES).json()

    opus = [item for item in body["items"] if item["model"] == "claude-opus-5-5"]
    assert [(item["input_usd"], item["cache_read_usd"], item["valid_from"]) for item in opus] == [
        ("4", "0.2", "2026-09-22")
    ]
    assert body["unpriced"] == [{"model": "claude-opus-9", "tokens": 2 * M, "requests": 2}]
    tiers = [item["prompt_tokens_above"] for item in body["items"] if item["model"] == "claude-haiku-5-5"]
    assert tiers == [0, 100_000]


def test_adding_a_price_prices_what_waited_for_it(filled: ApiClient, workspace: Any) -> None:
    before = filled.get(PRICES).json()["price_book_version"]

    response = filled.put(PRICES, NEW)

    body = response.json()
    assert (response.status_code, body["records"], body["newly_priced"]) == (200, 2, 2)
    assert (body["cost_before_usd"], body["cost_after_usd"]) == ("0.000000", "14.000000")
    assert body["price_book_version"] != before
    assert total(filled) == "18.000000"
    report = filled.get("/prompt-cache/report?group_by=model").json()
    assert (report["unpriced"], report["price_book_version"]) == ([], body["price_book_version"])
    assert check_rollups(workspace=workspace) == []


def test_the_change_is_logged_with_what_it_did(filled: ApiClient) -> None:
    body = filled.put(PRICES, {"items": [NEW], "reason": "contract of November"}).json()

    change_set = ChangeSet.objects.get(public_id=body["change_set"])
    assert (change_set.action, change_set.reason, change_set.subject_count) == (
        "prices.store",
        "contract of November",
        2,
    )
    assert AuditEvent.objects.get(change_set=change_set).subject_id == "claude-opus-9"


@pytest.mark.parametrize("where", ["body", "query"])
def test_a_dry_run_changes_nothing(filled: ApiClient, where: str) -> None:
    before = list(UsageRecord.objects.order_by("pk").values())

    if where == "body":
        body = filled.put(PRICES, {"items": [NEW], "dry_run": True}).json()
    else:
        body = filled.put(f"{PRICES}?dry_run=true", NEW).json()

    assert (body["dry_run"], body["records"], body["cost_after_usd"], body["change_set"]) == (
        True,
        2,
        "14.000000",
        None,
    )
    assert list(UsageRecord.objects.order_by("pk").values()) == before
    assert (Price.objects.count(), total(filled)) == (0, "4.000000")


def test_a_correction_reprices_from_its_day_on(filled: ApiClient, workspace: Any) -> None:
    filled.put(PRICES, NEW)

    body = filled.put(PRICES, {**NEW, "input_usd": "5", "valid_from": "2026-11-15"}).json()

    assert (body["records"], body["cost_before_usd"], body["cost_after_usd"]) == (1, "7.000000", "5.000000")
    assert total(filled) == "16.000000"
    assert check_rollups(workspace=workspace) == []


def test_storing_a_price_again_replaces_it(filled: ApiClient) -> None:
    filled.put(PRICES, NEW)

    again = filled.put(PRICES, NEW).json()
    corrected = filled.put(PRICES, {**NEW, "input_usd": 6}).json()

    assert (again["records"], corrected["records"], Price.objects.count()) == (0, 2, 1)
    assert total(filled) == "16.000000"


def test_an_own_price_wins_over_the_list(filled: ApiClient) -> None:
    filled.put(PRICES, {"model": "claude-opus-5-5", "input_usd": 3.5, "output_usd": "20"})

    assert total(filled) == "3.500000"


def test_new_records_are_priced_by_the_book_as_it_is(filled: ApiClient) -> None:
    filled.put(PRICES, {**NEW, "cache_read_usd": "0.35", "prompt_tokens_above": 0})
    (item,) = filled.post(
        "/prompt-cache/usage", make_report("m9", model="claude-opus-9", usage={"cache_read_input_tokens": M})
    ).json()["items"]

    assert item["cost_usd"] == "0.350000"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": []},
        {**NEW, "model": ""},
        {**NEW, "input_usd": "-1"},
        {**NEW, "input_usd": "NaN"},
        {**NEW, "input_usd": "1e9"},
        {**NEW, "input_usd": "0.0000001"},
        {**NEW, "input_usd": None},
        {**NEW, "valid_from": "2026-11-02", "valid_until": "2026-11-01"},
        {**NEW, "prompt_tokens_above": -1},
        {**NEW, "surprise": 1},
        {"model": "claude-opus-9"},
    ],
)
def test_what_is_no_price_is_refused(filled: ApiClient, body: dict[str, Any]) -> None:
    assert filled.put(PRICES, body).status_code == 422
    assert not Price.objects.exists()


def test_prices_belong_to_one_workspace(filled: ApiClient, stranger_api: ApiClient, api_with: Any) -> None:
    filled.put(PRICES, NEW)
    (item,) = stranger_api.post("/prompt-cache/usage", make_report(model="claude-opus-9")).json()["items"]

    assert item["unpriced"]
    assert not [one for one in stranger_api.get(PRICES).json()["items"] if one["source"] == "workspace"]
    assert api_with("usage:read").put(PRICES, NEW).status_code == 403


def test_more_records_than_one_transaction_should_hold_are_priced_by_a_job(
    filled: ApiClient, workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repricing, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(repricing, "ROWS_PER_STEP", 1)

    body = filled.put(PRICES, NEW).json()
    halfway = total(filled)
    run_now(Job.objects.get(kind="reprice").pk)

    assert (body["records"], body["later"], halfway, total(filled)) == (1, 1, "11.000000", "18.000000")
    assert Job.objects.get(kind="reprice").state == "done"
    assert ChangeSet.objects.get().subject_count == 2
    assert check_rollups(workspace=workspace) == []
