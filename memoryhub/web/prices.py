"""The price book by day: unpriced models on top, add and correct with a preview of what it does to the ledger."""

import csv
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub.common import clock, errors
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.queries import ListedPrice, list_prices, list_unpriced_models, price_book_version
from memoryhub.prompt_cache.report_csv import safe_cell
from memoryhub.prompt_cache.services.price_book import BadPriceError, preview_prices, remove_price, store_prices
from memoryhub.prompt_cache.services.repricing import Repricing
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.prices import PriceForm
from memoryhub.web.paging import url_with

_RATES = {
    "input": gettext_lazy("Input"),
    "cache_write_5m": gettext_lazy("Write, 5 min"),
    "cache_write_1h": gettext_lazy("Write, 1 h"),
    "cache_read": gettext_lazy("Read"),
    "output": gettext_lazy("Output"),
}


@dataclass(frozen=True, slots=True)
class PriceRow:
    """An entry of the book as its row shows it; prices in dollars per million tokens."""

    model: str
    first_of_model: bool
    span: str
    above: str
    rates: list[tuple[Any, str]]
    state: str
    tone: str
    note: str
    price_id: int | None
    correct_url: str


def rate_text(pico: int) -> str:
    """Return a rate in dollars per million tokens."""
    dollars = Decimal(pico).scaleb(-6).normalize()
    places = max(2, -int(dollars.as_tuple().exponent))
    return f"${dollars:,.{places}f}"


def span_text(valid_from: date | None, valid_until: date | None) -> str:
    """Return when a price holds, in words."""
    start = valid_from if valid_from and valid_from.year > 2000 else None
    if start and valid_until:
        return f"{formats.day(start)} – {formats.day(valid_until)}"
    if start:
        return _("from %(day)s") % {"day": formats.day(start)}
    return _("until %(day)s") % {"day": formats.day(valid_until)} if valid_until else _("always")


def above_text(prompt_tokens: int) -> str:
    """Return from which prompt size a price holds, in words; nothing for all of them."""
    return _("prompts above %(n)s") % {"n": formats.tokens(prompt_tokens)} if prompt_tokens else ""


def _rows(listed: list[ListedPrice], today: date) -> list[PriceRow]:
    rows: list[PriceRow] = []
    overridden = {price.entry.model for price in listed if price.is_own}
    for price in listed:
        entry = price.entry
        if price.is_own:
            state, tone = _("yours"), "accent"
        elif entry.valid_until and entry.valid_until < today:
            state, tone = _("past"), ""
        elif entry.valid_from and entry.valid_from > today:
            state, tone = _("to come"), "teal"
        else:
            state, tone = (
                (_("list price, yours counts"), "") if entry.model in overridden else (_("list price"), "good")
            )
        rows.append(
            PriceRow(
                model=entry.model,
                first_of_model=not rows or rows[-1].model != entry.model,
                span=span_text(entry.valid_from, entry.valid_until),
                above=above_text(entry.prompt_tokens_above),
                rates=[(label, rate_text(getattr(entry.rates, name))) for name, label in _RATES.items()],
                state=state,
                tone=tone,
                note=price.note,
                price_id=price.price_id,
                correct_url=f"{reverse('prices')}?model={entry.model}#price-form",
            )
        )
    return rows


@require_GET
@member("viewer")
def prices(request: MemberRequest) -> HttpResponse:
    """Show the book; `?model=` narrows it and fills the form, `format=csv` gives it as a file."""
    if request.GET.get("format") == "csv":
        return _as_csv(request)
    return _show(request, PriceForm(initial=_initial(request)))


def _as_csv(request: MemberRequest) -> HttpResponse:
    workspace = request.principal.workspace
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="memoryhub-prices.csv"'
    writer = csv.writer(response, lineterminator="\r\n")
    writer.writerow(["# price book version", price_book_version(workspace), "USD per million tokens, by UTC day"])
    rates = [f"{name}_usd" for name in _RATES]
    writer.writerow(["model", "valid_from", "valid_until", "prompt_tokens_above", *rates, "source", "note"])
    for price in list_prices(workspace, model=request.GET.get("model", "")):
        entry = price.entry
        days = [day.isoformat() if day and day.year > 2000 else "" for day in (entry.valid_from, entry.valid_until)]
        amounts = [money.usd_per_million_text(getattr(entry.rates, name)) for name in _RATES]
        cells = [entry.model, *days, entry.prompt_tokens_above, *amounts, entry.source, price.note]
        writer.writerow([safe_cell(cell) for cell in cells])
    return response


def _initial(request: MemberRequest) -> dict[str, Any]:
    """Fill the form with the model's newest entry, so that correcting it is changing a number."""
    model = request.GET.get("model", "")[:200]
    listed = list_prices(request.principal.workspace, model=model) if model else []
    if not listed:
        return {"model": model}
    entry = listed[0].entry
    rates = {f"{name}_usd": Decimal(getattr(entry.rates, name)).scaleb(-6).normalize() for name in _RATES}
    plain = {name: format(value, "f") for name, value in rates.items()}
    start = entry.valid_from if entry.valid_from and entry.valid_from.year > 2000 else None
    return {"model": model, "valid_from": start, "prompt_tokens_above": entry.prompt_tokens_above or None, **plain}


@require_POST
@member("admin")
def set_price(request: MemberRequest) -> HttpResponse:
    """Preview what a price would do, or store it and price the ledger anew in one change set."""
    form = PriceForm(data=request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    principal, draft = request.principal, form.draft()
    try:
        if request.POST.get("action") != "save":
            return _show(request, form, preview=preview_prices(workspace=principal.workspace, drafts=[draft]))
        result = store_prices(
            workspace=principal.workspace, actor=principal.actor, drafts=[draft], reason=draft.note, door="web"
        )
    except BadPriceError as error:
        form.add_error(None, error.detail)
        return _show(request, form, status=422)
    messages.success(request, f"{_('The price is stored.')} {effect_text(result)}")
    return redirect("prices")


@require_http_methods(["GET", "POST"])
@member("admin")
def drop_price(request: MemberRequest, price_id: int) -> HttpResponse:
    """Ask, then take one of the workspace's own prices out; the list price holds again."""
    principal = request.principal
    found = next((price for price in list_prices(principal.workspace) if price.price_id == price_id), None)
    if found is None:
        raise errors.NotFound(_("There is no such price in this workspace."))
    if request.method == "GET":
        context = {
            "question": _("Remove your price of %(model)s?") % {"model": found.entry.model},
            "consequence": _("The list price holds again, where there is one, and the ledger is priced anew."),
            "confirm_label": _("Remove the price"),
            "back_url": reverse("prices"),
        }
        return render(request, "confirm.html", context)
    result = remove_price(workspace=principal.workspace, actor=principal.actor, price_id=price_id, door="web")
    messages.success(request, f"{_('The price is removed.')} {effect_text(result)}")
    return redirect("prices")


def effect_text(result: Repricing) -> str:
    """Return what new prices do to the ledger, in words."""
    if not result.records:
        return _("No record changes its amount.")
    records = ngettext("%(n)s record changes:", "%(n)s records change:", result.records) % {
        "n": formats.count(result.records)
    }
    before, after = (
        formats.usd(Decimal(pico).scaleb(-12)) for pico in (result.cost_before_pico, result.cost_after_pico)
    )
    text = f"{records} {before} → {after}"
    if result.newly_priced:
        text += " " + ngettext("(%(n)s had no price before)", "(%(n)s had no price before)", result.newly_priced) % {
            "n": formats.count(result.newly_priced)
        }
    return text


def _show(
    request: MemberRequest, form: PriceForm, *, preview: Repricing | None = None, status: int = 200
) -> HttpResponse:
    workspace = request.principal.workspace
    model = request.GET.get("model", "")
    listed = list_prices(workspace, model=model)
    context = {
        "rows": _rows(listed, clock.now().date()),
        "rate_labels": _RATES.values(),
        "unpriced": list_unpriced_models(workspace),
        "version": price_book_version(workspace),
        "csv_url": url_with(request, format="csv"),
        "model": model,
        "form": form,
        "is_admin": request.principal.role == "admin",
        "preview": effect_text(preview) if preview else "",
    }
    return render(request, "prompt_cache/prices.html", context, status=status)
