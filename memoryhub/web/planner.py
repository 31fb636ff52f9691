"""The planner: a recorded session replayed under each caching plan, and markers for a pasted request."""

import csv
import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from memoryhub.common import errors
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.simulator import PLANS, Replay
from memoryhub.prompt_cache.queries import checks, replays
from memoryhub.prompt_cache.queries.plans import GOOD_CALIBRATION
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.requests import PlanForm
from memoryhub.web.miss_words import BASES
from memoryhub.web.miss_words import PLANS as PLAN_WORDS
from memoryhub.web.paging import url_with
from memoryhub.web.tidy_urls import tidied

RECENT_SESSIONS = 30


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One plan as its row shows it."""

    name: str
    what: str
    usd: Decimal | None
    regret: Decimal | None
    share: float
    hit_rate: float | None
    reads: int
    writes: int
    pings: int
    is_best: bool
    is_actual: bool


@require_GET
@member("viewer")
@tidied
def planner(request: MemberRequest) -> HttpResponse:
    """Show the plans of `?session=`; `format=csv` gives the same table as a file."""
    workspace = request.principal.workspace
    session = request.GET.get("session", "")[:200]
    context: dict[str, Any] = {
        "session": session,
        "sessions": replays.recent_sessions(workspace, limit=RECENT_SESSIONS),
        "form": PlanForm(),
        "complaint": "",
    }
    if session:
        try:
            result = replays.replay_session(workspace, session=session, plans=PLANS)
        except replays.UnknownSessionError as error:
            context["complaint"] = str(error.detail)
            return render(request, "prompt_cache/planner.html", context, status=404)
        if request.GET.get("format") == "csv":
            return _as_csv(session, result)
        context |= _shown(request, result)
    return render(request, "prompt_cache/planner.html", context)


@require_POST
@member("viewer")
def plan_request(request: MemberRequest) -> HttpResponse:
    """Place markers in a pasted request; it is shown, not stored."""
    form = PlanForm(data=request.POST)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        try:
            planned = checks.plan_request(request.principal.workspace, form.cleaned_data["body"])
        except errors.HubError as error:
            form.add_error("body", str(error.detail))
        else:
            context["markers"] = [
                {"path": one.path, "ttl": one.ttl, "why": _(one.why), "reads": one.break_even_reads}
                for one in planned.markers
            ]
            context["annotated"] = json.dumps(planned.body, indent=2, ensure_ascii=False)
    return render(request, "prompt_cache/planner_body.html", context, status=422 if form.errors else 200)


def _shown(request: MemberRequest, result: replays.SessionReplay) -> dict[str, Any]:
    simulation = result.simulation
    costs = [one.cost_pico for one in simulation.replays if one.cost_pico is not None]
    most = max(costs, default=0) or 1
    rows = [_row(one, simulation.regret_pico(one), most) for one in simulation.replays]
    rows.sort(key=lambda row: (row.usd is None, row.usd or Decimal(0)))
    actual = next(row for row in rows if row.is_actual)
    best = rows[0]
    error = simulation.calibration_error
    return {
        "result": result,
        "rows": rows,
        "best": best,
        "actual": actual,
        "regret_share": formats.percent(actual.regret / actual.usd) if actual.regret and actual.usd else "",
        "calibration": formats.percent(error, 2) if error is not None else "",
        "well_calibrated": error is not None and error <= GOOD_CALIBRATION,
        "basis": BASES[result.basis],
        "csv_url": url_with(request, format="csv"),
    }


def _row(one: Replay, regret: int | None, most: int) -> PlanRow:
    name, what = PLAN_WORDS[one.plan]
    return PlanRow(
        name=str(name),
        what=str(what),
        usd=None if one.cost_pico is None else money.usd(one.cost_pico),
        regret=None if regret is None else money.usd(regret),
        share=float(Decimal(one.cost_pico or 0) / most),
        hit_rate=one.hit_rate,
        reads=sum(bill.cache_read for bill in one.bills),
        writes=sum(bill.cache_write_5m + bill.cache_write_1h for bill in one.bills),
        pings=one.pings,
        is_best=regret == 0,
        is_actual=one.plan == "actual",
    )


def _as_csv(session: str, result: replays.SessionReplay) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="memoryhub-plans.csv"'
    writer = csv.writer(response, lineterminator="\r\n")
    simulation = result.simulation
    error = "" if simulation.calibration_error is None else f"{simulation.calibration_error:.6f}"
    writer.writerow(["# requests", result.requests, "basis", result.basis, "calibration error", error])
    writer.writerow(
        [
            "plan",
            "cost_usd",
            "regret_usd",
            "hit_rate",
            "cache_read_tokens",
            "cache_write_tokens",
            "input_tokens",
            "pings",
        ]
    )
    for one in simulation.replays:
        regret = simulation.regret_pico(one)
        writer.writerow(
            [
                one.plan,
                "" if one.cost_pico is None else money.usd_text(one.cost_pico),
                "" if regret is None else money.usd_text(regret),
                "" if one.hit_rate is None else f"{one.hit_rate:.6f}",
                sum(bill.cache_read for bill in one.bills),
                sum(bill.cache_write_5m + bill.cache_write_1h for bill in one.bills),
                sum(bill.input for bill in one.bills),
                one.pings,
            ]
        )
    return response
