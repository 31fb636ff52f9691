"""The doctor: misses by dollars with their causes, advice, agreement with the provider, and a place to paste requests."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import F
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.common import errors
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.validator import Finding
from memoryhub.prompt_cache.models import Diagnosis
from memoryhub.prompt_cache.queries import Span, checks, findings
from memoryhub.prompt_cache.queries.miss_causes import CauseSum
from memoryhub.prompt_cache.report_csv import safe_cell
from memoryhub.prompt_cache.services.doctor import EXCERPTS_SETTING, keep_excerpts
from memoryhub.prompt_cache.services.spool import lost_record_count
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.cause_words import NAMES, cause_name
from memoryhub.web.forms.requests import CheckForm
from memoryhub.web.miss_words import BASES, PROVIDER, VERDICTS, change_label
from memoryhub.web.paging import page_of, url_with
from memoryhub.web.ranges import DEFAULT_PRESET, PRESETS, DayRange, read_range
from memoryhub.web.report import Kpi
from memoryhub.workspaces.models import Workspace

CSV_ROWS = 50_000
ORDERS: dict[str, list[tuple[str, Any]]] = {
    "dollars": [("cost", "desc"), ("pk", "desc")],
    "time": [("occurred_at", "desc"), ("pk", "desc")],
}


@dataclass(frozen=True, slots=True)
class Card:
    """One piece of advice."""

    title: str
    text: str
    path: str
    fix: str
    usd: Decimal
    href: str


@dataclass(frozen=True, slots=True)
class MissRow:
    """One miss as its row shows it."""

    miss: Diagnosis
    cause: str
    change: str
    usd: Decimal | None
    fix: str
    basis: str
    provider: str


@require_GET
@member("viewer")
def doctor(request: MemberRequest) -> HttpResponse:
    """Show what was found in a range of days; `format=csv` gives the misses as a file."""
    workspace = request.principal.workspace
    days = read_range(request.GET, default_zone=workspace.time_zone)
    span = Span(days.first, days.last, ZoneInfo(days.zone))
    start, end = span.start, span.end
    cause = request.GET.get("cause", "") if request.GET.get("cause", "") in NAMES else ""
    session = request.GET.get("session", "")[:200]
    misses = findings.list_misses(workspace, start, end, cause=cause, session=session)
    misses = misses.annotate(cost=_cost())
    if request.GET.get("format") == "csv":
        return _as_csv(misses.select_related("record").order_by("-cost", "-pk")[:CSV_ROWS], days)
    order = request.GET.get("order", "") if request.GET.get("order", "") in ORDERS else "dollars"
    page = page_of(request, misses, order=ORDERS[order], load=findings.load_misses)
    advised_since = findings.advised_since(workspace, start, end)
    overview = findings.look_over(workspace, span)
    context = {
        "days": days,
        "presets": _presets(request, days),
        "kpis": _figures(overview.figures),
        "lost": lost_record_count(),
        "cards": [_card(card, request) for card in findings.list_advice(workspace, advised_since, end)],
        "advice_note": _advice_note(span, advised_since),
        "causes": _causes(request, overview.causes, cause),
        "rows": [_row(miss) for miss in page.items],
        "page": page,
        "order": order,
        "order_urls": {
            "dollars": url_with(request, order=None, cursor=None),
            "time": url_with(request, order="time", cursor=None),
        },
        "cause": cause,
        "cause_label": cause_name(cause) if cause else "",
        "session": session,
        "clear_url": url_with(request, cause=None, session=None, cursor=None),
        "csv_url": url_with(request, format="csv", cursor=None),
        "matrix": _matrix(overview.matrix),
        "form": CheckForm(),
        "keeps_excerpts": workspace.settings.get(EXCERPTS_SETTING) is True,
        "is_admin": request.principal.role == "admin",
    }
    return render(request, "prompt_cache/doctor.html", context)


@require_POST
@member("admin")
def excerpts(request: MemberRequest) -> HttpResponse:
    """Keep excerpts of the differing text from now on, or remove them and keep none."""
    keep = request.POST.get("keep") == "yes"
    principal = request.principal
    keep_excerpts(workspace=principal.workspace, actor=principal.actor, keep=keep)
    messages.success(
        request, _("Excerpts are kept from now on.") if keep else _("Excerpts are removed and no longer kept.")
    )
    return redirect(f"{reverse('doctor')}#misses")


@require_POST
@member("viewer")
def check(request: MemberRequest) -> HttpResponse:
    """Diagnose two pasted requests and validate the later one; nothing is stored."""
    form = CheckForm(data=request.POST)
    context: dict[str, Any] = {"form": form}
    status = 200
    if form.is_valid():
        try:
            context |= _checked(request.principal.workspace, form.cleaned_data)
        except errors.HubError as error:
            form.add_error(None, str(error.detail))
    if form.errors:
        status = 422
    return render(request, "prompt_cache/doctor_check.html", context, status=status)


def _checked(workspace: Workspace, pasted: dict[str, Any]) -> dict[str, Any]:
    previous, current = pasted["previous"], pasted["current"]
    found = checks.check_request(workspace, current)
    groups = [
        (_("Errors: the provider refuses the request"), "bad", [_said(one) for one in found if one.level == "error"]),
        (
            _("Warnings: it will not be cached as meant"),
            "warn",
            [_said(one) for one in found if one.level == "warning"],
        ),
        (_("Advice"), "", [_said(one) for one in found if one.level == "advice"]),
    ]
    context: dict[str, Any] = {"checked": True, "groups": [group for group in groups if group[2]]}
    if previous is not None:
        answer = checks.diagnose_requests(workspace, previous=previous, current=current)
        label, tone = VERDICTS[answer.verdict]
        context["answer"] = answer
        context["verdict"] = label
        context["tone"] = tone
        context["cause"] = cause_name(answer.cause)
        context["change"] = change_label(answer.detail, answer.kind)
        context["usd"] = None if answer.missed_pico is None else money.usd(answer.missed_pico)
        context["fix"] = _(answer.fix) if answer.fix else ""
        context["basis"] = BASES[answer.basis]
        context["also"] = [cause_name(cause) for cause in answer.also]
        context["provider"] = PROVIDER.get(answer.provider_reason or "", answer.provider_reason or "")
    return context


def _said(finding: Finding) -> dict[str, Any]:
    """Return a finding in the viewer's language; its code and path are the same everywhere."""
    text = _(finding.sentence) % finding.values
    return {"code": finding.code, "path": finding.path, "text": text, "excerpt": finding.facts.get("excerpt", "")}


def _cost() -> Any:
    """Misses of unpriced models stand last."""
    return Coalesce(F("missed_pico"), -1)


def _presets(request: MemberRequest, days: DayRange) -> list[tuple[str, Any, bool]]:
    return [
        (
            url_with(
                request, **{"range": None if key == DEFAULT_PRESET else key, "from": None, "to": None, "cursor": None}
            ),
            label,
            key == days.preset,
        )
        for key, label in PRESETS.items()
    ]


def _figures(sums: findings.Diagnosed) -> list[Kpi]:
    share = Decimal(sums.hits) / (sums.hits + sums.misses) if sums.hits + sums.misses else None
    agreement = Decimal(sums.agreed) / sums.compared if sums.compared else None
    return [
        Kpi(
            _("Lost to misses"),
            formats.usd(money.usd(sums.missed_pico)),
            _("beyond what reading would have cost"),
            "down" if sums.missed_pico else "",
        ),
        Kpi(
            _("Missed tokens"),
            formats.tokens(sums.missed_tokens),
            ngettext("in %(n)s miss", "in %(n)s misses", sums.misses) % {"n": formats.count(sums.misses)},
        ),
        Kpi(
            _("Hits among them"),
            formats.percent(share),
            _("%(n)s requests looked at") % {"n": formats.count(sums.requests)},
        ),
        Kpi(
            _("The provider agrees"),
            formats.percent(agreement),
            _("where it said something: %(n)s") % {"n": formats.count(sums.compared)},
        ),
    ]


def _advice_note(span: Span, since: datetime) -> str:
    """Say so where the range holds more misses than advice looks at."""
    if since == span.start:
        return ""
    return _("Made of the newest %(n)s misses, those since %(day)s.") % {
        "n": formats.count(findings.LOOKED_AT),
        "day": formats.day(since.astimezone(span.zone).date()),
    }


def _card(card: findings.AdviceCard, request: MemberRequest) -> Card:
    times = ngettext("%(n)s time", "%(n)s times", card.misses) % {"n": formats.count(card.misses)}
    where = ngettext("in %(n)s session", "in %(n)s sessions", card.sessions) % {"n": formats.count(card.sessions)}
    change = change_label(card.detail, card.kind)
    cause = cause_name(card.cause)
    # Translators: the cause of a miss and what changed, for example "Tools changed: reordered"
    title = (
        pgettext("cause and change", "%(cause)s: %(change)s") % {"cause": cause, "change": change} if change else cause
    )
    tokens = _("%(n)s tokens") % {"n": formats.tokens(card.tokens)}
    text = f"{times} {where} · {tokens} · {formats.ago(card.last_at)}"
    href = url_with(request, cause=card.cause, cursor=None)
    return Card(title, text, card.path, _(card.fix) if card.fix else "", money.usd(card.pico), f"{href}#misses")


def _causes(request: MemberRequest, causes: list[CauseSum], chosen: str) -> list[dict[str, Any]]:
    most = max((cause.missed_usd for cause in causes), default=Decimal(0)) or Decimal(1)
    return [
        {
            "label": cause_name(cause.cause),
            "usd": cause.missed_usd,
            "share": float(cause.missed_usd / most),
            "misses": cause.count,
            "tokens": cause.missed_tokens,
            "href": f"{url_with(request, cause=cause.cause, cursor=None)}#misses",
            "on": cause.cause == chosen,
        }
        for cause in causes
    ]


def _row(miss: Diagnosis) -> MissRow:
    return MissRow(
        miss=miss,
        cause=cause_name(miss.cause),
        change=change_label(miss.detail, miss.kind),
        usd=None if miss.missed_pico is None else money.usd(miss.missed_pico),
        fix=_(miss.fix) if miss.fix else "",
        basis="" if miss.basis == "body" else str(BASES[miss.basis]),
        provider=str(PROVIDER.get(miss.provider_reason, miss.provider_reason)),
    )


def _matrix(counts: dict[tuple[str, str], int]) -> dict[str, Any]:
    """Ours down, theirs across; what is on the diagonal agrees, and what we could not compare stands apart in the last row."""
    names = [name for name in PROVIDER if name != findings.NO_BODIES and any(name in pair for pair in counts)]
    ours_too = [name for name in (*names, findings.NO_BODIES) if name in names or any(name in pair for pair in counts)]
    rows = [
        (PROVIDER[ours], [_cell(counts.get((ours, theirs), 0), ours, theirs) for theirs in names]) for ours in ours_too
    ]
    return {"names": [PROVIDER[name] for name in names], "rows": rows}


def _cell(count: int, ours: str, theirs: str) -> dict[str, Any]:
    tone = "is-agreed" if ours == theirs else "is-apart" if count and ours != findings.NO_BODIES else ""
    return {"n": count, "tone": tone}


_COLUMNS = (
    "occurred_at", "session", "project", "model", "message_id", "cause", "detail", "path", "kind", "offset",
    "expected_tokens", "read_tokens", "missed_tokens", "missed_usd", "provider_reason", "agrees", "basis", "fix",
)  # fmt: skip


def _as_csv(misses: Iterable[Diagnosis], days: DayRange) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="memoryhub-misses.csv"'
    writer = csv.writer(response, lineterminator="\r\n")
    writer.writerow(["# time zone", days.zone, "from", days.first.isoformat(), "to", days.last.isoformat()])
    writer.writerow(_COLUMNS)
    zone = ZoneInfo(days.zone)
    for miss in misses:
        values = {
            "occurred_at": miss.occurred_at.astimezone(zone).isoformat(),
            "message_id": miss.record.message_id,
            "missed_usd": "" if miss.missed_pico is None else money.usd_text(miss.missed_pico),
        }
        cells = [values[name] if name in values else getattr(miss, name) for name in _COLUMNS]
        writer.writerow(["" if cell is None else safe_cell(cell) for cell in cells])
    return response
