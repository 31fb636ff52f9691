"""The requests behind the report's sums, one by one, and one of them with its bill and what the doctor found."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from memoryhub.flows.continued_node import find_continued_node
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.models import Diagnosis, RecordState, UsageRecord
from memoryhub.prompt_cache.queries import Span, get_request, list_billed_parts, list_requests
from memoryhub.prompt_cache.queries.records import BilledPart, CostLine
from memoryhub.prompt_cache.report_csv import safe_cell
from memoryhub.web import formats, paging
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.cause_words import cause_name
from memoryhub.web.miss_words import BASES, PROVIDER, VERDICTS, change_label
from memoryhub.web.prices import rate_text
from memoryhub.web.ranges import DEFAULT_PRESET, PRESETS, DayRange, read_range
from memoryhub.web.session_words import session_url
from memoryhub.web.templatetags.hub import last_segment

CSV_ROWS = 50_000
NEWEST_FIRST: paging.Order = (("occurred_at", "desc"), ("id", "desc"))
NAMES: dict[str, Any] = {
    "session": gettext_lazy("Session"),
    "project": gettext_lazy("Project"),
    "model": gettext_lazy("Model"),
    "agent": gettext_lazy("Agent"),
    "user": gettext_lazy("User"),
}
LINES: dict[str, Any] = {
    "input": gettext_lazy("Uncached input"),
    "cache_write_5m": gettext_lazy("Cache write, 5 min"),
    "cache_write_1h": gettext_lazy("Cache write, 1 h"),
    "cache_read": gettext_lazy("Cache read"),
    "output": gettext_lazy("Output"),
    "web_search": gettext_lazy("Web searches"),
}
PARTS: dict[str, Any] = {
    "message": gettext_lazy("Response"),
    "compaction": gettext_lazy("Compaction"),
    "advisor_message": gettext_lazy("Advisor"),
    "fallback_message": gettext_lazy("Fallback"),
}
FLAGS: dict[str, Any] = {
    "cut_stream": gettext_lazy("The stream was cut; its usage is partial."),
    "split_missing": gettext_lazy("The split of writes by lifetime is missing; they are priced at 5 minutes."),
    "split_partial": gettext_lazy("The split of writes by lifetime leaves some out; they are priced at 5 minutes."),
    "priority_at_list_price": gettext_lazy(
        "Priority capacity is shown at list price; what it costs depends on your contract."
    ),
    "fast_not_offered": gettext_lazy("Fast mode has no price for this model; it is priced as standard."),
    "negative_number": gettext_lazy("A number is negative."),
    "part_exceeds_total": gettext_lazy("A part is larger than its total."),
    "implausible_number": gettext_lazy("A number is larger than any request can be."),
}


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One request as its row shows it; `usd` is None where it has no price."""

    record: UsageRecord
    url: str
    project: str
    usd: Decimal | None
    wait: str
    miss: str


@require_GET
@member("viewer")
def requests(request: MemberRequest) -> HttpResponse:
    """List the requests of a range of days, the newest first; names in the address narrow them; `format=csv` gives a file."""
    workspace = request.principal.workspace
    days = read_range(request.GET, default_zone=workspace.time_zone)
    only = {name: request.GET[name][:500] for name in NAMES if request.GET.get(name)}
    found = list_requests(workspace, Span(days.first, days.last, ZoneInfo(days.zone)), only)
    if request.GET.get("format") == "csv":
        return _as_csv(found.order_by("-occurred_at", "-id")[:CSV_ROWS], days)
    page = paging.page_of(request, found, order=NEWEST_FIRST)
    context = {
        "days": days,
        "presets": _presets(request, days),
        "rows": [_row(record) for record in page.items],
        "page": page,
        "chips": [
            (NAMES[name], last_segment(value) if name == "project" else value, paging.url_with(request, **{name: None}))
            for name, value in only.items()
        ],
        "csv_url": paging.url_with(request, format="csv", cursor=None),
        "planner_url": f"{reverse('planner')}?{urlencode({'session': only['session']})}" if "session" in only else "",
    }
    return render(request, "prompt_cache/requests.html", context)


def _presets(request: MemberRequest, days: DayRange) -> list[tuple[str, Any, bool]]:
    cleared = {"from": None, "to": None, "cursor": None}
    return [
        (
            paging.url_with(request, range=None if key == DEFAULT_PRESET else key, **cleared),
            label,
            key == days.preset,
        )
        for key, label in PRESETS.items()
    ]


def _row(record: UsageRecord) -> RequestRow:
    diagnosis = diagnosis_of(record)
    return RequestRow(
        record=record,
        url=reverse("request", args=[record.pk]),
        project=last_segment(record.project) if record.project else "",
        usd=usd_of(record),
        wait=wait_of(record),
        miss=cause_name(diagnosis.cause) if diagnosis and diagnosis.reported else "",
    )


def diagnosis_of(record: UsageRecord) -> Diagnosis | None:
    """Return what the doctor found, None where it has not looked yet."""
    return getattr(record, "diagnosis", None)


def usd_of(record: UsageRecord) -> Decimal | None:
    """Return what a record costs, None where it has no price or can't be right."""
    return money.usd(record.cost_pico) if record.state == RecordState.PRICED else None


def wait_of(record: UsageRecord) -> str:
    """Return the time to the first byte, nothing where it is not known."""
    start, first = record.started_at, record.first_byte_at
    return formats.duration(first - start) if start and first and first >= start else ""


_COLUMNS = (
    "occurred_at", "message_id", "request_id", "session", "project", "model", "agent", "user", "source",
    "input_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "cache_read_tokens", "output_tokens",
    "cost_usd", "nocache_usd", "verdict", "cause", "missed_tokens", "missed_usd", "price_book_version",
)  # fmt: skip


def _as_csv(records: Iterable[UsageRecord], days: DayRange) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="memoryhub-requests.csv"'
    writer = csv.writer(response, lineterminator="\r\n")
    writer.writerow(["# time zone", days.zone, "from", days.first.isoformat(), "to", days.last.isoformat()])
    writer.writerow(_COLUMNS)
    zone = ZoneInfo(days.zone)
    for record in records:
        priced, diagnosis = record.state == RecordState.PRICED, diagnosis_of(record)
        missed = diagnosis.missed_pico if diagnosis else None
        values = {
            "occurred_at": record.occurred_at.astimezone(zone).isoformat(),
            "cost_usd": money.usd_text(record.cost_pico) if priced else "",
            "nocache_usd": money.usd_text(record.nocache_pico) if priced else "",
            "verdict": diagnosis.verdict if diagnosis else "",
            "cause": diagnosis.cause if diagnosis else "",
            "missed_tokens": diagnosis.missed_tokens if diagnosis else "",
            "missed_usd": "" if missed is None else money.usd_text(missed),
        }
        writer.writerow([safe_cell(values[name] if name in values else getattr(record, name)) for name in _COLUMNS])
    return response


# --- One request -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of the bill as its table shows it."""

    title: Any
    model: str
    factor: str
    lines: list[tuple[Any, int, str, Decimal]]
    usd: Decimal | None


@require_GET
@member("viewer")
def request(request: MemberRequest, record_id: int) -> HttpResponse:
    """One request: when and where, its bill line by line, and why it missed the cache if it did."""
    workspace = request.principal.workspace
    record = get_request(workspace, record_id)
    diagnosis = diagnosis_of(record)
    context = {
        "record": record,
        "project": last_segment(record.project) if record.project else "",
        "usd": usd_of(record),
        "nocache_usd": money.usd(record.nocache_pico) if record.state == RecordState.PRICED else None,
        "saving_usd": money.usd(record.net_saving_pico) if record.state == RecordState.PRICED else None,
        "hit_rate": record.cache_read_tokens / record.prompt_tokens if record.prompt_tokens else None,
        "excluded": record.state == RecordState.EXCLUDED,
        "wait": wait_of(record),
        "lasted": _lasted(record.started_at, record.ended_at),
        "parts": [_part_row(part) for part in list_billed_parts(workspace, record)],
        "flags": [FLAGS.get(flag, flag.replace("_", " ")) for flag in record.flags],
        "answer": _answer(diagnosis) if diagnosis else None,
        "node": _node(record),
        "session_url": f"/sessions/{quote(record.session, safe='')}" if record.session else "",
        "requests_url": _requests_url(record),
        "planner_url": f"{reverse('planner')}?{urlencode({'session': record.session})}" if record.session else "",
    }
    return render(request, "prompt_cache/request.html", context)


def _node(record: UsageRecord) -> dict[str, Any] | None:
    """Where the request stands in its session's tree."""
    found = find_continued_node(record) if record.session else None
    if found is None:
        return None
    return {
        "url": session_url(record.session, at=found.event_id),
        "event": found.event_id,
        "changed_url": session_url(record.session, at=found.changed_event_id) if found.changed_event_id else "",
        "changed": found.changed_event_id,
        "own": found.blocks - found.matched,
        "matched": found.matched,
        "blocks": found.blocks,
    }


def _lasted(start: datetime | None, end: datetime | None) -> str:
    return formats.duration(end - start) if start and end and end >= start else ""


def _requests_url(record: UsageRecord) -> str:
    """The session's requests around this one."""
    if not record.session:
        return reverse("requests")
    day = record.occurred_at.date().isoformat()
    return f"{reverse('requests')}?{urlencode({'session': record.session, 'from': day, 'to': day, 'tz': 'UTC'})}"


def _part_row(part: BilledPart) -> PartRow:
    record = part.record
    return PartRow(
        title=PARTS.get(record.kind, record.kind.replace("_", " ")),
        model=record.model,
        factor=f"× {float(part.factor):g}" if part.factor != 1 else "",
        lines=[_line(line) for line in part.lines],
        usd=usd_of(record),
    )


def _line(line: CostLine) -> tuple[Any, int, str, Decimal]:
    return LINES[line.kind], line.count, rate_text(line.rate) if line.rate is not None else "", money.usd(line.pico)


def _answer(diagnosis: Diagnosis) -> dict[str, Any]:
    """What the doctor found, in words."""
    label, tone = VERDICTS[diagnosis.verdict]
    previous = diagnosis.previous
    return {
        "diagnosis": diagnosis,
        "verdict": label,
        "tone": tone,
        "cause": cause_name(diagnosis.cause),
        "change": change_label(diagnosis.detail, diagnosis.kind),
        "usd": None if diagnosis.missed_pico is None else money.usd(diagnosis.missed_pico),
        "fix": _(diagnosis.fix) if diagnosis.fix else "",
        "basis": BASES[diagnosis.basis],
        "also": [cause_name(cause) for cause in diagnosis.also],
        "provider": PROVIDER.get(diagnosis.provider_reason, diagnosis.provider_reason),
        "previous_url": reverse("request", args=[previous.pk]) if previous else "",
        "previous_at": previous.occurred_at if previous else None,
    }
