"""Forms of the memory pages. The room checks the rules again; here a mistake is shown beside its field."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from memoryhub.long_term_memory.domain.guards import MAX_CONTENT_BYTES
from memoryhub.long_term_memory.domain.scoping import MAX_CHARS
from memoryhub.long_term_memory.models import Kind
from memoryhub.web.forms import HubForm


def split_tags(text: str) -> list[str]:
    """Return the tags of a comma-separated line; Chinese commas separate as well."""
    parts = text.replace("，", ",").replace("、", ",").split(",")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


class _ContentForm(HubForm):
    content = forms.CharField(
        label=gettext_lazy("Content"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        max_length=MAX_CONTENT_BYTES,
    )

    def clean_content(self) -> str:
        """Browsers send line breaks as CR LF; what is stored has LF."""
        content: str = self.cleaned_data["content"].replace("\r\n", "\n")
        if not content.strip():
            raise forms.ValidationError(_("Write something to remember."))
        return content


class SupersedeForm(_ContentForm):
    """The text that takes the place of an older one."""


class _FactsForm(_ContentForm):
    subject = forms.CharField(
        label=gettext_lazy("Subject"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Whom or what it is about; counts more in search."),
    )
    kind = forms.ChoiceField(label=pgettext_lazy("kind of memory", "Kind"), choices=Kind.choices, initial=Kind.SEMANTIC)
    tags = forms.CharField(label=gettext_lazy("Tags"), required=False, help_text=gettext_lazy("Separated by commas."))
    valid_until = forms.DateTimeField(
        label=gettext_lazy("Valid until"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def clean_tags(self) -> list[str]:
        """Return the tags as a list."""
        return split_tags(self.cleaned_data["tags"])


class EditMemoryForm(_FactsForm):
    """What a person edits on the memory's page.

    `valid_until_shown` is what the field showed: browsers drop the seconds, and a moment that nobody touched must not
    look changed.
    """

    valid_until_shown = forms.CharField(required=False, widget=forms.HiddenInput)

    field_order = ("content", "subject", "kind", "tags", "valid_until")


class NewMemoryForm(_FactsForm):
    """A memory that a person writes."""

    agent = forms.CharField(label=gettext_lazy("Agent"), required=False, max_length=MAX_CHARS["agent"])
    user = forms.CharField(label=gettext_lazy("User"), required=False, max_length=MAX_CHARS["user"])
    project = forms.CharField(label=gettext_lazy("Project"), required=False, max_length=MAX_CHARS["project"])
    importance = forms.FloatField(
        label=gettext_lazy("Importance"),
        initial=0.5,
        min_value=0,
        max_value=1,
        widget=forms.NumberInput(attrs={"step": "0.05"}),
        help_text=gettext_lazy("From 0 to 1. Unimportant memories fade first."),
    )
    pinned = forms.BooleanField(label=gettext_lazy("Pin it, so that it never fades"), required=False)
    expires_at = forms.DateTimeField(
        label=gettext_lazy("Expires"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    field_order = (
        "content",
        "agent",
        "user",
        "project",
        "subject",
        "kind",
        "importance",
        "tags",
        "valid_until",
        "expires_at",
        "pinned",
    )

    def clean(self) -> dict[str, Any]:
        """A memory belongs to somebody."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not any(cleaned.get(name) for name in ("agent", "user", "project")):
            self.add_error("agent", _("Name an agent, a user or a project: whom does it belong to?"))
        return cleaned


def local_input(value: datetime | None) -> datetime | None:
    """Return a moment as the form's initial value; the widget writes it in the viewer's zone."""
    return value
