"""Forms of the settings pages: the workspace, its members, keys and webhooks."""

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from memoryhub.common import clock
from memoryhub.web.account import zone_choices
from memoryhub.web.forms import HubForm
from memoryhub.web.webhook_words import EVENT_LABELS
from memoryhub.webhooks.domain.events import EVENTS
from memoryhub.webhooks.services import InvalidWebhook, clean_url
from memoryhub.workspaces.models import Role
from memoryhub.workspaces.principals import ALL_SCOPES, ROOM_SCOPES, Binding

SCOPE_LABELS: dict[str, Any] = {
    "memories:read": _("Read memories"),
    "memories:write": _("Write memories"),
    "cache:read": _("Read sessions and tool results"),
    "cache:write": _("Write sessions and tool results"),
    "usage:read": _("Read usage and reports"),
    "usage:write": _("Record usage"),
    "admin": _("Administer the workspace"),
}
EXPIRIES = (
    ("", _("Never")),
    ("7", _("In 7 days")),
    ("30", _("In 30 days")),
    ("90", _("In 90 days")),
    ("365", _("In a year")),
)


class KeyForm(HubForm):
    """A new API key."""

    name = forms.CharField(
        label=_("Name"), max_length=120, help_text=_("Who will use it, for example “reviewer on build-3”.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("It may"),
        widget=forms.CheckboxSelectMultiple,
        choices=[(scope, SCOPE_LABELS[scope]) for scope in ALL_SCOPES],
        initial=list(ROOM_SCOPES),
    )
    expires = forms.ChoiceField(label=_("Expires"), choices=EXPIRIES, required=False)
    agent = forms.CharField(
        label=_("Bound to agent"),
        max_length=200,
        required=False,
        help_text=_("What it reads and writes stays with this agent."),
    )
    user = forms.CharField(label=_("Bound to user"), max_length=200, required=False)
    project = forms.CharField(label=_("Bound to project"), max_length=500, required=False)

    def arguments(self) -> dict[str, Any]:
        """Return what the service takes."""
        data = self.cleaned_data
        days = int(data["expires"]) if data["expires"] else 0
        return {
            "name": data["name"],
            "scopes": data["scopes"],
            "expires_at": clock.now() + timedelta(days=days) if days else None,
            "binding": Binding(data["agent"] or None, data["user"] or None, data["project"] or None),
        }


class NewMemberForm(HubForm):
    """A new person, or one of this hub who joins the workspace."""

    name = forms.CharField(label=_("User name"), max_length=150)
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)
    password = forms.CharField(
        label=_("First password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        required=False,
        strip=False,
        help_text=_("Only for somebody who is new to this hub; they can change it on their account page."),
    )


class RoleForm(HubForm):
    """A member's role."""

    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)


class WorkspaceForm(HubForm):
    """The workspace's title and the zone of its reports."""

    title = forms.CharField(label=_("Title"), max_length=120, required=False)
    time_zone = forms.ChoiceField(
        label=_("Time zone of reports"), help_text=_("Days are cut in this zone; the sums are rebuilt when it changes.")
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].choices = zone_choices()  # type: ignore[attr-defined]


class WebhookForm(HubForm):
    """A webhook: where it is and what it hears."""

    url = forms.CharField(label=_("Address"), max_length=2000, widget=forms.URLInput())
    note = forms.CharField(label=_("Note"), max_length=200, required=False)
    events = forms.MultipleChoiceField(
        label=_("It hears"),
        widget=forms.CheckboxSelectMultiple,
        choices=[(event, EVENT_LABELS[event]) for event in EVENTS],
        required=False,
        help_text=_("None ticked: all of them."),
    )

    def clean_url(self) -> str:
        try:
            return clean_url(self.cleaned_data["url"])
        except InvalidWebhook as error:
            raise forms.ValidationError(
                _("Give an address that begins with https:// or http://, without user name or fragment.")
            ) from error
