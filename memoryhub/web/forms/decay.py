"""The form of the decay policy."""

from typing import Any

from django import forms
from django.utils.translation import gettext as now_gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.long_term_memory.domain.decay import MAX_DAYS, DecayPolicy, PolicyBook
from memoryhub.long_term_memory.models import Kind
from memoryhub.web.forms import HubForm

_BY_KIND = ("factor", "half_life_days", "floor")
_NUMBERS = {"factor", "half_life_days", "floor", "fade_threshold", "archive_threshold", "forget_after_days"}


def _share(label: Any, help_text: Any = "") -> forms.FloatField:
    return forms.FloatField(
        label=label, min_value=0, max_value=1, help_text=help_text, widget=forms.NumberInput(attrs={"step": "0.01"})
    )


def _days(label: Any, *, required: bool = True, help_text: Any = "") -> forms.FloatField:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(
        label=label, min_value=0, max_value=MAX_DAYS, required=required, help_text=help_text, widget=widget
    )


class DecayForm(HubForm):
    """How memories fade in this workspace."""

    curve = forms.ChoiceField(
        label=_("Curve"),
        choices=[("seed", _("By a factor a day, slower the more often recalled")), ("half_life", _("By a half-life"))],
        widget=forms.RadioSelect,
    )
    factor = _share(_("Factor a day"), _("0.95 keeps 95 % of the strength each idle day."))
    half_life_days = _days(_("Half-life (days)"), help_text=_("For the second curve."))
    floor = _share(_("Floor"), _("Strength never falls below it."))
    fade_threshold = _share(_("Fading below"))
    archive_threshold = _share(_("Archived below"))
    forget_after_days = _days(
        _("Forgotten after (days archived)"), required=False, help_text=_("Empty keeps them for ever.")
    )
    access_window_seconds = forms.IntegerField(
        label=_("Recalls within (seconds) count once"), min_value=0, max_value=30 * 86400
    )
    protected_tags = forms.CharField(
        label=_("Protected tags"),
        required=False,
        max_length=2000,
        help_text=_("Memories with one of these never fade; separate by commas."),
    )
    by_tag = forms.CharField(
        label=_("Exceptions by tag"),
        required=False,
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=_("One a line, for example: decisions factor=0.99 floor=0.2"),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for kind in Kind:
            for name in _BY_KIND:
                field = _days("", required=False) if name == "half_life_days" else _share("")
                field.required = False
                field.widget.attrs["class"] = "input is-small"
                field.widget.attrs["aria-label"] = f"{kind.label}: {self.fields[name].label}"
                self.fields[f"{kind.value}_{name}"] = field

    @classmethod
    def of(cls, book: PolicyBook) -> "DecayForm":
        """Return the form filled with a policy."""
        policy = book.base
        initial: dict[str, Any] = {name: getattr(policy, name) for name in DecayPolicy.__dataclass_fields__}
        initial["protected_tags"] = ", ".join(sorted(policy.protected_tags))
        initial["by_tag"] = "\n".join(
            f"{tag} {' '.join(f'{name}={value}' for name, value in fields.items() if name in _NUMBERS)}"
            for tag, fields in sorted(book.by_tag.items())
        )
        for kind, fields in book.by_kind.items():
            initial |= {f"{kind}_{name}": value for name, value in fields.items()}
        return cls(initial=initial)

    def kind_rows(self) -> list[tuple[Any, list[Any]]]:
        """Return the exceptions by kind as (label, bound fields) for the table."""
        return [(kind.label, [self[f"{kind.value}_{name}"] for name in _BY_KIND]) for kind in Kind]

    def clean_protected_tags(self) -> list[str]:
        """Split at commas, English or Chinese ones."""
        text = self.cleaned_data["protected_tags"].replace("，", ",")
        return sorted({tag.strip() for tag in text.split(",") if tag.strip()})

    def clean_by_tag(self) -> dict[str, dict[str, float]]:
        """Read `tag name=value ...` lines."""
        book: dict[str, dict[str, float]] = {}
        for line in filter(str.strip, self.cleaned_data["by_tag"].splitlines()):
            words = line.split()
            settings = [word for word in words if "=" in word]
            tag = " ".join(word for word in words if "=" not in word)
            try:
                pairs = dict(setting.split("=", 1) for setting in settings)
                fields = {name: float(value) for name, value in pairs.items()}
            except ValueError as error:
                raise forms.ValidationError(now_gettext("“%(line)s” can't be read.") % {"line": line[:80]}) from error
            if not tag or not fields or set(fields) - _NUMBERS:
                raise forms.ValidationError(
                    now_gettext("“%(line)s” needs a tag and some of %(names)s.")
                    % {"line": line[:80], "names": ", ".join(sorted(_NUMBERS))}
                )
            book[tag] = fields
        return book

    def changes(self) -> dict[str, Any]:
        """Return what the service takes."""
        data = self.cleaned_data
        by_kind = {
            kind.value: {
                name: data[f"{kind.value}_{name}"] for name in _BY_KIND if data.get(f"{kind.value}_{name}") is not None
            }
            for kind in Kind
        }
        base = {name: data[name] for name in DecayPolicy.__dataclass_fields__}
        return {
            **base,
            "by_kind": {kind: fields for kind, fields in by_kind.items() if fields},
            "by_tag": data["by_tag"],
        }


class GuardForm(HubForm):
    """What is done with suspicious writes."""

    redact_secrets = forms.BooleanField(
        label=_("Redact secrets (keys, tokens, private keys) before they are stored"), required=False
    )
    quarantine_instructions = forms.BooleanField(
        label=_("Quarantine text that reads like instructions to an agent"), required=False
    )
    skip_recalled = forms.BooleanField(
        label=_("Skip text that was recalled and is sent back for storing"), required=False
    )
    quarantine_unknown_agents = forms.BooleanField(
        label=_("Quarantine writes of agents that are not known yet"), required=False
    )
    find_duplicates = forms.BooleanField(label=_("Offer near duplicates for review"), required=False)
    max_writes_per_minute = forms.IntegerField(
        label=_("Writes per minute of one key or person"),
        min_value=0,
        max_value=1_000_000,
        help_text=_("0 is no limit."),
    )
    extracted_memories = forms.ChoiceField(
        label=_("Extracted memories"),
        choices=[("review", _("wait in the review inbox")), ("unreviewed", _("are stored as unreviewed"))],
    )
