"""The price book's page: what is unpriced stands on top, a price is previewed before it is stored."""

import pytest
from django.test import Client

from memoryhub.audit.models import ChangeSet
from memoryhub.prompt_cache.models import Price, UsageRecord
from memoryhub.workspaces.models import Workspace
from tests.web.test_report import make_usage

PRICE = {"model": "claude-zeta-9", "input_usd": "4", "output_usd": "20"}


def test_an_unpriced_model_stands_on_top(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27, model="claude-zeta-9")

    page = viewer.get("/prices").content.decode()

    assert page.index("claude-zeta-9") < page.index("claude-opus-5-5")


def test_a_preview_says_what_would_change_and_changes_nothing(admin: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27, model="claude-zeta-9")

    page = admin.post("/prices/new", {**PRICE, "action": "preview"}).content.decode()

    assert "1 record changes: $0.00 → $0.11" in page  # 100,000 * 0.4 + 10,000 * 5 + 1,000 * 20 dollars per million
    assert not Price.objects.exists()
    assert UsageRecord.objects.get().cost_pico == 0


def test_storing_a_price_reprices_the_ledger_in_one_change_set(admin: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27, model="claude-zeta-9")

    admin.post("/prices/new", {**PRICE, "action": "save", "note": "from the invoice"})

    assert UsageRecord.objects.get().cost_pico == 110_000_000_000
    assert "from the invoice" in admin.get("/changes").content.decode()


def test_removing_a_price_asks_first(admin: Client, workspace: Workspace) -> None:
    admin.post("/prices/new", {**PRICE, "action": "save"})
    price = Price.objects.get()

    question = admin.get(f"/prices/{price.pk}/remove")
    assert question.status_code == 200
    assert Price.objects.exists()
    admin.post(f"/prices/{price.pk}/remove")

    assert not Price.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("input_usd", "-1"),
        ("input_usd", "many"),
        ("output_usd", ""),
        ("input_usd", "1e99"),
        ("model", ""),
        ("input_usd", "NaN"),
    ],
)
def test_a_price_that_is_none_is_refused_beside_its_field(
    admin: Client, workspace: Workspace, field: str, value: str
) -> None:
    answer = admin.post("/prices/new", {**PRICE, field: value, "action": "save"})

    assert answer.status_code == 422
    assert f'id="id_{field}_error"' in answer.content.decode()
    assert not Price.objects.exists()


def test_an_editor_can_not_change_prices(editor: Client, workspace: Workspace) -> None:
    assert editor.post("/prices/new", {**PRICE, "action": "save"}).status_code == 403
    assert "price-form" not in editor.get("/prices").content.decode()


def test_a_price_of_another_workspace_is_out_of_reach(admin: Client, stranger: Client, workspace: Workspace) -> None:
    admin.post("/prices/new", {**PRICE, "action": "save"})

    assert stranger.post(f"/prices/{Price.objects.get().pk}/remove").status_code == 404
    assert Price.objects.exists()


def last_change() -> str:
    return ChangeSet.objects.latest("pk").public_id


def test_a_change_of_prices_is_shown_and_taken_back_after_a_preview(admin: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27, model="claude-zeta-9")
    admin.post("/prices/new", {**PRICE, "action": "save"})
    admin.post("/prices/new", {**PRICE, "input_usd": "5", "action": "save"})
    change = last_change()

    page = admin.get(f"/changes/{change}").content.decode()
    question = admin.post(f"/changes/{change}/revert").content.decode()

    assert "<del>$4.00</del> <ins>$5.00</ins>" in page
    assert "1 price goes back to what it was. 1 record changes: $0.13 → $0.11" in question
    assert Price.objects.get().input_rate == 5_000_000
    admin.post(f"/changes/{change}/revert", {"confirmed": "1"})
    assert Price.objects.get().input_rate == 4_000_000
    assert UsageRecord.objects.get().cost_pico == 110_000_000_000
    assert "Revert this change" not in admin.get(f"/changes/{change}").content.decode()
    assert "Revert this change" in admin.get(f"/changes/{last_change()}").content.decode()


def test_only_admins_take_prices_back(admin: Client, editor: Client, stranger: Client, workspace: Workspace) -> None:
    admin.post("/prices/new", {**PRICE, "action": "save"})
    change = last_change()

    assert "Revert this change" not in editor.get(f"/changes/{change}").content.decode()
    assert editor.post(f"/changes/{change}/revert", {"confirmed": "1"}).status_code == 403
    assert stranger.post(f"/changes/{change}/revert", {"confirmed": "1"}).status_code == 404
    assert Price.objects.exists()
