"""Forms into which requests are pasted."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as now_gettext
from django.utils.translation import gettext_lazy as _

from memoryhub.web.forms import HubForm

LONGEST_PASTE = 4 * 1024 * 1024


class JsonField(forms.CharField):
    """A text that must be a JSON object; says line and column where it is not."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            data = json.loads(text)
            json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair can't be shown
        except json.JSONDecodeError as error:
            place = {"line": error.lineno, "column": error.colno, "reason": error.msg}
            message = now_gettext("This is not JSON: %(reason)s at line %(line)s, column %(column)s.") % place
            raise forms.ValidationError(message) from error
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(now_gettext("This JSON can't be read.")) from error
        if not isinstance(data, dict):
            raise forms.ValidationError(now_gettext("A request is a JSON object."))
        return data


def _pasted(label: Any, help_text: Any, *, required: bool, rows: int = 8) -> JsonField:
    widget = forms.Textarea(attrs={"rows": rows, "spellcheck": "false", "class": "textarea mh-mono"})
    return JsonField(label=label, help_text=help_text, required=required, max_length=LONGEST_PASTE, widget=widget)


class CheckForm(HubForm):
    """Two neighbouring requests to diagnose, or one to validate."""

    previous = _pasted(
        _("Earlier request"),
        _("Its body, or {request, usage, started_at} around it. Leave it empty to only validate the later one."),
        required=False,
    )
    current = _pasted(
        _("Later request"), _("Its body, or {request, usage, started_at, diagnostics} around it."), required=True
    )


class PlanForm(HubForm):
    """A request that gets markers."""

    body = _pasted(_("Request body"), _("What you send to /v1/messages; it is not stored."), required=True, rows=10)
