"""The form that adds or corrects a price."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.prompt_cache.services.price_book import PriceDraft
from memoryhub.web.forms import HubForm

HIGHEST_USD = Decimal(100_000)


def _usd(label: Any, *, required: bool = False, help_text: Any = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label,
        required=required,
        min_value=0,
        max_value=HIGHEST_USD,
        decimal_places=6,
        max_digits=12,
        help_text=help_text,
    )


class PriceForm(HubForm):
    """A model's prices from a day on, in dollars per million tokens."""

    model = forms.CharField(label=_("Model"), max_length=200)
    valid_from = forms.DateField(
        label=_("Valid from"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    valid_until = forms.DateField(
        label=_("Valid until"), required=False, widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    prompt_tokens_above = forms.IntegerField(
        label=_("For prompts above (tokens)"), required=False, min_value=0, max_value=10**9
    )
    input_usd = _usd(_("Input"), required=True)
    output_usd = _usd(_("Output"), required=True)
    cache_write_5m_usd = _usd(_("Cache write, 5 min"), help_text=_("empty: 1.25 × input"))
    cache_write_1h_usd = _usd(_("Cache write, 1 h"), help_text=_("empty: 2 × input"))
    cache_read_usd = _usd(_("Cache read"), help_text=_("empty: 0.1 × input"))
    note = forms.CharField(label=_("Why"), max_length=300, required=False)

    def draft(self) -> PriceDraft:
        """Return what the service takes."""
        data = dict(self.cleaned_data)
        return PriceDraft(**{**data, "prompt_tokens_above": data["prompt_tokens_above"] or 0})
