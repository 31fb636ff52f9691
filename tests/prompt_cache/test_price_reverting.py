"""POST /changes/{id}/revert of prices: the book and the ledger go back, a preview first, what changed since is left alone."""

from typing import Any

import pytest

from memoryhub.audit.models import ChangeSet
from memoryhub.jobs.tasks import run_now
from memoryhub.prompt_cache.models import Price, UsageRecord
from memoryhub.prompt_cache.services import repricing
from memoryhub.prompt_cache.services.price_book import remove_price
from memoryhub.prompt_cache.services.rollups import check_rollups
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal
from tests.conftest import ApiClient
from tests.prompt_cache.makers import make_report, plain_usage
from tests.prompt_cache.test_prices_api import NEW, PRICES, M, total


@pytest.fixture
def filled(api: ApiClient) -> ApiClient:
    """A million tokens of a model without a price and of one with 4 USD per million."""
    reports = [
        make_report("m1", model="claude-opus-9", usage=plain_usage(M)),
        make_report("m2", usage=plain_usage(M)),
    ]
    assert api.post("/prompt-cache/usage", reports).status_code == 201
    return api


def store(api: ApiClient, *prices: dict[str, Any]) -> str:
    return str(api.put(PRICES, {"items": list(prices)}).json()["change_set"])


def revert(api: ApiClient, change: str, **body: Any) -> Any:
    return api.post(f"/changes/{change}/revert", body or None)


def book() -> list[dict[str, Any]]:
    names = [field.name for field in Price._meta.fields if field.name not in ("id", "created_at", "updated_at")]
    return list(Price.objects.order_by("model", "valid_from", "prompt_tokens_above").values(*names))


def test_a_new_price_goes_and_its_records_are_unpriced_again(filled: ApiClient, workspace: Workspace) -> None:
    before = filled.get("/prompt-cache/report?group_by=model").json()
    change = store(filled, NEW)

    body = revert(filled, change).json()

    assert (body["reverted"], body["skipped"], body["repriced"]["cost_before_usd"]) == (1, [], "7.000000")
    assert (body["repriced"]["records"], body["repriced"]["cost_after_usd"]) == (1, "0.000000")
    assert book() == []
    assert filled.get("/prompt-cache/report?group_by=model").json() == before
    assert check_rollups(workspace=workspace) == []


def test_a_corrected_price_becomes_what_it_was(filled: ApiClient, workspace: Workspace) -> None:
    store(filled, NEW | {"valid_until": "2026-12-31", "note": "contract", "cache_read_usd": "0.35"})
    stood = book()
    change = store(filled, NEW | {"input_usd": "70", "output_usd": "1"})

    revert(filled, change)

    assert book() == stood
    assert total(filled) == "11.000000"
    assert check_rollups(workspace=workspace) == []


def test_a_revert_can_be_reverted(filled: ApiClient) -> None:
    undone = revert(filled, store(filled, NEW)).json()["change_set"]

    again = revert(filled, undone).json()

    assert (again["reverted"], total(filled), Price.objects.count()) == (1, "11.000000", 1)
    assert ChangeSet.objects.get(public_id=again["change_set"]).reverts == ChangeSet.objects.get(public_id=undone)


def test_a_removed_price_comes_back(filled: ApiClient, workspace: Workspace, owner: Principal) -> None:
    store(filled, NEW)
    stood = book()
    removed = remove_price(workspace=workspace, actor=owner.actor, price_id=Price.objects.get().pk)
    assert removed.change_set is not None

    revert(filled, removed.change_set.public_id)

    assert (book(), total(filled)) == (stood, "11.000000")


def test_a_dry_run_says_what_would_change_and_changes_nothing(filled: ApiClient) -> None:
    change = store(filled, NEW)
    records = list(UsageRecord.objects.order_by("pk").values())

    body = revert(filled, change, dry_run=True).json()

    assert (body["reverted"], body["repriced"]["records"], body["change_set"]) == (1, 1, None)
    assert list(UsageRecord.objects.order_by("pk").values()) == records
    assert ChangeSet.objects.count() == 1


def test_what_changed_since_is_left_alone_unless_forced(filled: ApiClient) -> None:
    other = {"model": "claude-opus-5-5", "input_usd": "3", "output_usd": "1"}
    change = store(filled, NEW, other)
    store(filled, NEW | {"input_usd": "8"})

    body = revert(filled, change).json()
    alone = total(filled)
    forced = revert(filled, change, force=True).json()

    assert body["reverted"] == 1
    assert body["skipped"] == [{"id": "claude-opus-9 2000-01-01 above 0", "reason": "changed since"}]
    assert alone == "12.000000"
    assert (forced["reverted"], total(filled)) == (1, "4.000000")
    assert [row["reason"] for row in forced["skipped"]] == ["back already"]


def test_reverting_twice_does_nothing_the_second_time(filled: ApiClient) -> None:
    change = store(filled, NEW)
    revert(filled, change)

    again = revert(filled, change).json()

    assert (again["reverted"], again["change_set"]) == (0, None)
    assert ChangeSet.objects.count() == 2


def test_one_entry_stored_twice_in_a_call_goes_back_to_before_the_call(filled: ApiClient) -> None:
    revert(filled, store(filled, NEW, NEW | {"input_usd": "9"}))

    assert (book(), total(filled)) == ([], "4.000000")


def test_records_that_are_too_many_are_priced_by_a_job(
    filled: ApiClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.post("/prompt-cache/usage", make_report("m3", model="claude-opus-9", usage=plain_usage(M)))
    change = store(filled, NEW)
    monkeypatch.setattr(repricing, "MOST_AT_ONCE", 1)

    body = revert(filled, change).json()
    run_now(Job.objects.get(kind="reprice").pk)

    assert (body["repriced"]["records"], body["repriced"]["later"], total(filled)) == (1, 1, "4.000000")
    assert check_rollups(workspace=workspace) == []


def test_prices_are_reverted_by_the_scope_that_stores_them(
    filled: ApiClient, api_with: Any, stranger_api: ApiClient
) -> None:
    change = store(filled, NEW)

    assert revert(api_with("memories:write"), change).status_code == 403
    assert revert(stranger_api, change).status_code == 404
    assert revert(api_with("usage:write"), "chg_none").status_code == 403  # it may not ask about memories
    assert Price.objects.exists()
    assert revert(api_with("usage:write"), change).status_code == 200
    assert not Price.objects.exists()
