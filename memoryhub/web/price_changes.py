"""Changes of prices on the page of a change set: what each entry was and is, and a question before it is taken back."""

from dataclasses import dataclass
from datetime import date

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryhub.audit.models import ChangeSet
from memoryhub.flows.reverting import TakenBack
from memoryhub.prompt_cache.queries.price_changes import RATES, PriceChange, PriceForm, list_price_changes
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest
from memoryhub.web.prices import above_text, effect_text, rate_text, span_text


@dataclass(frozen=True, slots=True)
class Cell:
    """A value before and after; `changed` where they differ."""

    before: str
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class PriceChangeRow:
    """One entry of the book that a change set touched."""

    model: str
    above: str
    span: Cell
    rates: list[Cell]
    state: str
    tone: str


def price_rows(change_set: ChangeSet) -> list[PriceChangeRow]:
    """Return the entries that a change set touched; none for a change of something else."""
    return [_row(change) for change in list_price_changes(change_set)]


def _row(change: PriceChange) -> PriceChangeRow:
    state, tone = (_("changed"), "accent")
    if change.before is None:
        state, tone = _("added"), "good"
    elif change.after is None:
        state, tone = _("removed"), "bad"
    return PriceChangeRow(
        model=change.model,
        above=above_text(change.prompt_tokens_above),
        span=Cell(_span(change, change.before), _span(change, change.after)),
        rates=[Cell(_rate(change.before, name), _rate(change.after, name)) for name in RATES],
        state=state,
        tone=tone,
    )


def _rate(form: PriceForm | None, name: str) -> str:
    return rate_text(form[name]) if form else ""


def _span(change: PriceChange, form: PriceForm | None) -> str:
    if form is None:
        return ""
    until = form["valid_until"]
    return span_text(change.valid_from, date.fromisoformat(until) if until else None)


def ask_before(request: MemberRequest, public_id: str, preview: TakenBack) -> HttpResponse:
    """Say what taking the prices back would do to the ledger, and ask."""
    assert preview.repricing is not None
    entries = ngettext(
        "%(n)s price goes back to what it was.", "%(n)s prices go back to what they were.", preview.reverted
    ) % {"n": formats.count(preview.reverted)}
    left = [
        _("%(entry)s changed since and is left alone.") % {"entry": row["id"]}
        if row["reason"] == "changed since"
        else _("%(entry)s is back already.") % {"entry": row["id"]}
        for row in preview.skipped
    ]
    context = {
        "question": _("Take these prices back?"),
        "consequence": f"{entries} {effect_text(preview.repricing)}",
        "details": left,
        "confirm_label": _("Take them back"),
        "back_url": reverse("change", args=[public_id]),
        "hidden": [("confirmed", "1")],
    }
    return render(request, "confirm.html", context)
