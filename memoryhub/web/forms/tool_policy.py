"""The form of a tool's policy."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.invalidation.strategies import STRATEGIES
from memoryhub.session_cache.models import ToolPolicy
from memoryhub.session_cache.services.policies import PolicyChoice
from memoryhub.web.forms import HubForm

STRATEGY_WORDS = {
    "hybrid": _("hybrid: all that the result knows about itself"),
    "fingerprint": _("fingerprint: while its files look the same"),
    "ttl": _("ttl: for a while"),
    "dependency": _("dependency: while its tags, etags and versions stand"),
    "event": _("event: until a watched folder reports a change"),
    "manual": _("manual: until somebody says otherwise"),
}
SCOPE_WORDS = {"session": _("each session has its own"), "workspace": _("shared by all sessions")}


def _shown(value: Any) -> Any:
    """Return a whole number without its decimals."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class WordsField(forms.CharField):
    """A comma-separated list of names."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        return tuple(word.strip() for word in text.split(",") if word.strip()) if isinstance(text, str) else ()

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list | tuple) else value


class ToolPolicyForm(HubForm):
    """What may be done with a tool's results."""

    cacheable = forms.BooleanField(
        label=_("May be cached"), required=False, help_text=_("Only for tools that change nothing.")
    )
    strategy = forms.ChoiceField(
        label=_("Strategy"), choices=[(name, STRATEGY_WORDS.get(name, name)) for name in STRATEGIES]
    )
    ttl_seconds = forms.FloatField(
        label=_("Lives for (seconds)"),
        required=False,
        min_value=0,
        help_text=_("Empty takes the default, 600; 0 stores nothing."),
    )
    scope = forms.ChoiceField(label=_("Scope"), choices=list(SCOPE_WORDS.items()))
    invalidates = WordsField(
        label=_("A run invalidates"), required=False, help_text=_("Tools (read_* is a family) or tags, by commas.")
    )
    may_change_anything = forms.BooleanField(
        label=_("A run may change any file"),
        required=False,
        help_text=_(
            "A shell, say. Results from before it have to prove their files; so it is for tools without a policy."
        ),
    )
    ignore_unknown_writes = forms.BooleanField(
        label=_("Results stand after such a run"),
        required=False,
        help_text=_("Only for results that no file can change."),
    )
    error_ttl_seconds = forms.FloatField(
        label=_("Keep errors for (seconds)"), required=False, min_value=0, help_text=_("0 keeps no error.")
    )
    stale_while_revalidate_seconds = forms.FloatField(
        label=_("Serve while computed anew (seconds)"), required=False, min_value=0
    )
    verify_share = forms.FloatField(
        label=_("Share of hits to run again"),
        required=False,
        min_value=0,
        max_value=1,
        help_text=_("0.01 checks one hit in a hundred and measures how many are stale."),
    )
    redact_params = WordsField(
        label=_("Hide these parameters"), required=False, help_text=_("Beside those that sound like secrets.")
    )

    @classmethod
    def of(cls, policy: ToolPolicy | None) -> "ToolPolicyForm":
        """Return the form with the policy's values, or the defaults of a new one."""
        if policy is None:
            return cls(initial={"cacheable": False, "strategy": "hybrid", "scope": "session"})
        return cls(initial={name: _shown(getattr(policy, name)) for name in cls.base_fields})

    def choice(self, before: ToolPolicy | None) -> PolicyChoice:
        """Return the policy as it was chosen; what the form does not show stays as it was."""
        data = self.cleaned_data
        return PolicyChoice(
            cacheable=data["cacheable"],
            ttl_seconds=data["ttl_seconds"],
            strategy=data["strategy"],
            scope=data["scope"],
            invalidates=data["invalidates"],
            may_change_anything=data["may_change_anything"],
            ignore_unknown_writes=data["ignore_unknown_writes"],
            error_ttl_seconds=data["error_ttl_seconds"] or 0,
            stale_while_revalidate_seconds=data["stale_while_revalidate_seconds"] or 0,
            ttl_jitter=before.ttl_jitter if before else 0,
            verify_share=data["verify_share"] or 0,
            redact_params=data["redact_params"],
            normalize_params=tuple(before.normalize_params) if before else (),
        )
