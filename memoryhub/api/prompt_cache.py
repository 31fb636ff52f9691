"""The ledger's door: usage in, the report out, the price book. Rules and diagnoses are in prompt_cache_rules.py."""

from datetime import date
from typing import Annotated, Any, Literal

import orjson
from django.http import HttpResponse
from ninja import Body, Query, Router, Status
from pydantic import Field

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.schemas.prompt_cache import (
    MOST_REPORTS,
    PriceBookOut,
    PriceIn,
    PriceOut,
    PricesIn,
    RecordedOut,
    ReportOut,
    RepricedOut,
    UnpricedOut,
    UsageIn,
)
from memoryhub.common import errors
from memoryhub.prompt_cache import queries
from memoryhub.prompt_cache.report_csv import report_csv, sum_values
from memoryhub.prompt_cache.services.price_book import preview_prices, store_prices
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.principals import OutsideBinding, Principal

router = Router(tags=["Prompt cache"])


class BadDateError(errors.Invalid):
    slug = "bad-date"
    title = "This is no day"


@router.post(
    "/prompt-cache/usage",
    auth=requires("usage:write"),
    response={201: RecordedOut},
    operation_id="recordUsage",
    summary="Record model responses",
)
def record_usage(
    request: ApiRequest,
    body: Annotated[UsageIn | Annotated[list[UsageIn], Field(min_length=1, max_length=MOST_REPORTS)], Body()],
) -> Any:
    """One response or up to 1,000. Recording one again, in any order, changes nothing; later numbers complete earlier ones."""
    items = body if isinstance(body, list) else [body]
    reports = [item.report(bound_place(request.principal, item)) for item in items]
    requests = [sent for item in items if (sent := item.sent_request()) is not None]
    recorded = record_reports(workspace=request.principal.workspace, reports=reports, requests=requests)
    return Status(201, RecordedOut.of(recorded, [report.message_id or report.request_id for report in reports]))


def bound_place(principal: Principal, item: UsageIn) -> dict[str, str]:
    """What the key's binding says about a record; a record of somebody else's is refused."""
    bound = binding_of(principal)
    for name, value in bound.items():
        if getattr(item, name) not in ("", value):
            raise OutsideBinding(f"This key records only what belongs to the {name} {value}.")
    return bound


def binding_of(principal: Principal) -> dict[str, str]:
    binding = principal.binding
    places = {"agent": binding.agent, "user": binding.user, "project": binding.project}
    return {name: value for name, value in places.items() if value}


@router.get(
    "/prompt-cache/report",
    auth=requires("usage:read"),
    response=ReportOut,
    operation_id="getCostReport",
    summary="Cost, savings and hit rate by group",
)
def get_report(
    request: ApiRequest,
    from_: Annotated[str, Query("", alias="from", max_length=10, description="First day, YYYY-MM-DD, in tz.")],
    to: Annotated[str, Query("", max_length=10, description="Last day, inclusive.")],
    tz: Annotated[str, Query("", max_length=64, description="A tz database name; the workspace's zone if empty.")],
    group_by: Annotated[str, Query("day", max_length=80, description="Some of day,project,model,agent,user,session.")],
    format: Annotated[Literal["json", "csv"], Query("json")],
) -> Any:
    """Sums of priced usage.

    Models without a price stand apart, with tokens and no dollars; records that can't be right are left out and counted.
    """
    report = queries.build_report(
        request.principal.workspace,
        first=_day("from", from_),
        last=_day("to", to),
        time_zone=tz,
        group_by=[name.strip() for name in group_by.split(",")],
        only=binding_of(request.principal),
    )
    return _as_csv(report) if format == "csv" else _as_json(report)


def _day(name: str, text: str) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if len(text) != 10 or not 1970 <= day.year <= 2200:
        raise BadDateError(f"{name} must be a day between 1970 and 2200 in the form 2026-11-29.")
    return day


def _as_json(report: queries.Report) -> HttpResponse:
    """Written directly: checking thousands of rows that we made ourselves would cost more than computing them."""
    body = {
        "rows": [{**row.keys, **sum_values(row.sums)} for row in report.rows],
        "totals": sum_values(report.totals),
        "unpriced": [UnpricedOut.of(one).dict() for one in report.unpriced],
        "excluded": report.excluded_count,
        "tz": report.time_zone,
        "price_book_version": report.price_book_version,
    }
    return HttpResponse(orjson.dumps(body), content_type="application/json; charset=utf-8")


def _as_csv(report: queries.Report) -> HttpResponse:
    response = HttpResponse(report_csv(report), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="memoryhub-costs.csv"'
    return response


@router.get(
    "/prompt-cache/prices",
    auth=requires("usage:read"),
    response=PriceBookOut,
    operation_id="getPriceBook",
    summary="Read the price book",
)
def get_prices(
    request: ApiRequest, model: Annotated[str, Query("", max_length=200, description="Only this model.")]
) -> Any:
    """List prices and the workspace's own (`source` tells), in USD per million tokens, and the models that have none."""
    workspace = request.principal.workspace
    return PriceBookOut(
        price_book_version=queries.price_book_version(workspace),
        items=[PriceOut.of(listed) for listed in queries.list_prices(workspace, model=model)],
        unpriced=[UnpricedOut.of(one) for one in queries.list_unpriced_models(workspace)],
    )


@router.put(
    "/prompt-cache/prices",
    auth=requires("usage:write"),
    response=RepricedOut,
    operation_id="storePrices",
    summary="Add or correct prices and price the ledger anew",
)
def put_prices(
    request: ApiRequest,
    body: Annotated[PricesIn | PriceIn, Body()],
    dry_run: Annotated[bool, Query(False, description="Only say what would change.")],
) -> Any:
    """Stores the workspace's own prices and prices its records anew, in one change set; a dry run only says what would change.

    They hold for everybody here: a bound key is refused, and so is a person who is no admin.
    """
    request.principal.require_price_setter()
    workspace = request.principal.workspace
    wanted = body if isinstance(body, PricesIn) else PricesIn(items=[body], reason="")
    drafts = [item.draft() for item in wanted.items]
    only_preview = dry_run or wanted.dry_run
    if only_preview:
        repricing = preview_prices(workspace=workspace, drafts=drafts)
    else:
        repricing = store_prices(
            workspace=workspace, actor=request.principal.actor, drafts=drafts, reason=wanted.reason, door="api"
        )
    version = queries.price_book_version(workspace)
    return RepricedOut.of(repricing, version=version, dry_run=only_preview)
