"""Settings of the workspace: its name and zone, members and roles, API keys, and where the layers' settings are."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings as hub_settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub.audit.services import record_event
from memoryhub.common import clock, errors
from memoryhub.flows import members as members_flow
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.workspace import SCOPE_LABELS, KeyForm, NewMemberForm, RoleForm, WorkspaceForm
from memoryhub.web.paging import page_of
from memoryhub.workspaces import queries, services
from memoryhub.workspaces.models import ApiKey
from memoryhub.workspaces.principals import ALL_SCOPES


def settings_tabs(current: str, role: str) -> list[tuple[str, str, bool]]:
    """Return the settings pages that a role may open as (url, label, is current)."""
    names = [("settings", _("Workspace"))]
    if role == "admin":
        names += [("settings_members", _("Members")), ("settings_keys", _("API keys"))]
    names += [("settings_decay", _("Decay policy"))]
    if role == "admin":
        names += [("settings_guards", _("Guards")), ("settings_webhooks", _("Webhooks"))]
    return [(reverse(name), label, name == current) for name, label in names]


@require_GET
@member("viewer")
def settings(request: MemberRequest) -> HttpResponse:
    """The workspace itself, and how the hub is set up."""
    workspace = request.principal.workspace
    form = WorkspaceForm(initial={"title": workspace.title, "time_zone": workspace.time_zone})
    return _show_workspace(request, form)


@require_POST
@member("admin")
def change_workspace(request: MemberRequest) -> HttpResponse:
    """Change the workspace's title or zone."""
    form = WorkspaceForm(data=request.POST)
    if not form.is_valid():
        return _show_workspace(request, form, status=422)
    members_flow.describe_workspace(
        workspace=request.principal.workspace, actor=request.principal.actor, **form.cleaned_data
    )
    messages.success(request, _("Saved."))
    return redirect("settings")


def _show_workspace(request: MemberRequest, form: WorkspaceForm, status: int = 200) -> HttpResponse:
    context = {
        "tabs": settings_tabs("settings", request.principal.role),
        "form": form,
        "workspace": request.principal.workspace,
        "is_admin": request.principal.role == "admin",
        "hub_facts": _hub_facts(),
    }
    return render(request, "workspaces/settings.html", context, status=status)


def _hub_facts() -> list[tuple[str, str, str]]:
    """Return (what, value, environment variable) of the settings that only whoever runs the hub can change."""
    key = _("set") if hub_settings.ANTHROPIC_API_KEY else _("not set")
    return [
        (_("Embedder"), hub_settings.EMBEDDER, "MEMORYHUB_EMBEDDER"),
        (_("Provider behind the proxy"), hub_settings.ANTHROPIC_UPSTREAM, "MEMORYHUB_ANTHROPIC_UPSTREAM"),
        (_("Provider's key for extraction"), key, "MEMORYHUB_ANTHROPIC_API_KEY"),
        (
            _("Folders of transcripts"),
            ", ".join(hub_settings.TRANSCRIPT_DIRS) or _("none"),
            "MEMORYHUB_TRANSCRIPT_DIRS",
        ),
        (_("Folders that the hub watches"), ", ".join(hub_settings.FILE_ROOTS) or _("none"), "MEMORYHUB_FILE_ROOTS"),
    ]


# --- API keys --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as its row shows it."""

    pk: int
    name: str
    lookup: str
    scopes: list[Any]
    binding: str
    created_at: Any
    created_by: str
    expires_at: Any
    last_used_at: Any
    state: str
    tone: str


def _key_row(key: ApiKey) -> KeyRow:
    now = clock.now()
    revoked, expired = key.revoked_at is not None, key.expires_at is not None and key.expires_at <= now
    state, tone = (_("revoked"), "") if revoked else (_("expired"), "warn") if expired else (_("active"), "good")
    binding = " · ".join(part for part in (key.agent, key.user, key.project) if part)
    scopes = [_("everything")] if set(key.scopes) == set(ALL_SCOPES) else [SCOPE_LABELS.get(s, s) for s in key.scopes]
    return KeyRow(
        key.pk,
        key.name,
        key.lookup,
        scopes,
        binding,
        key.created_at,
        key.created_by,
        key.expires_at,
        key.last_used_at,
        state,
        tone,
    )


@require_GET
@member("admin")
def keys(request: MemberRequest) -> HttpResponse:
    """List the keys."""
    return _show_keys(request, KeyForm())


@never_cache
@require_POST
@member("admin")
def create_key(request: MemberRequest) -> HttpResponse:
    """Create a key and show it, this once."""
    form = KeyForm(data=request.POST)
    if not form.is_valid():
        return _show_keys(request, form, status=422)
    principal = request.principal
    key, token = services.create_api_key(workspace=principal.workspace, created_by=principal.label, **form.arguments())
    record_event(
        workspace=principal.workspace,
        actor=principal.actor,
        action="create_key",
        subject_type="key",
        subject_id=key.lookup,
    )
    return _show_keys(request, KeyForm(), token=token, token_name=key.name)


def _show_keys(
    request: MemberRequest, form: KeyForm, *, token: str = "", token_name: str = "", status: int = 200
) -> HttpResponse:
    every = queries.list_api_keys(request.principal.workspace)
    page = page_of(request, every, order=queries.KEYS_ORDER, path=reverse("settings_keys"))
    context = {
        "tabs": settings_tabs("settings_keys", request.principal.role),
        "rows": [_key_row(key) for key in page.items],
        "page": page,
        "form": form,
        "token": token,
        "token_name": token_name,
    }
    return render(request, "workspaces/keys.html", context, status=status)


@require_http_methods(["GET", "POST"])
@member("admin")
def revoke_key(request: MemberRequest, key_id: int) -> HttpResponse:
    """Ask, then revoke."""
    principal = request.principal
    key = queries.list_api_keys(principal.workspace).filter(pk=key_id).first()
    if key is None:
        raise errors.NotFound(_("There is no such key in this workspace."))
    if request.method == "GET":
        context = {
            "question": _("Revoke the key “%(name)s”?") % {"name": key.name},
            "consequence": _(
                "Agents that use it are refused within five seconds. This can't be undone; make a new key instead."
            ),
            "confirm_label": _("Revoke the key"),
            "back_url": reverse("settings_keys"),
        }
        return render(request, "confirm.html", context)
    services.revoke_api_key(workspace=principal.workspace, key_id=key_id)
    record_event(
        workspace=principal.workspace,
        actor=principal.actor,
        action="revoke_key",
        subject_type="key",
        subject_id=key.lookup,
    )
    messages.success(request, _("The key “%(name)s” is revoked.") % {"name": key.name})
    return redirect("settings_keys")


# --- Members ---------------------------------------------------------------------------------------------------------
@require_GET
@member("admin")
def members(request: MemberRequest) -> HttpResponse:
    """List the members with their roles."""
    return _show_members(request, NewMemberForm(initial={"role": "editor"}))


@sensitive_post_parameters("password")
@require_POST
@member("admin")
def create_member(request: MemberRequest) -> HttpResponse:
    """Add a person: somebody new with a first password, or somebody whom the hub knows."""
    form = NewMemberForm(data=request.POST)
    if form.is_valid():
        try:
            members_flow.add_member(
                workspace=request.principal.workspace, actor=request.principal.actor, **form.cleaned_data
            )
        except services.WeakPassword as error:
            form.add_error("password", error.detail)
        except errors.HubError as error:
            form.add_error("name", error.detail)
    if not form.is_valid():
        return _show_members(request, form, status=422)
    messages.success(request, _("%(name)s is a member now.") % {"name": form.cleaned_data["name"]})
    return redirect("settings_members")


@require_POST
@member("admin")
def change_member(request: MemberRequest, user_id: int) -> HttpResponse:
    """Change a member's role, or take them out with role empty."""
    principal = request.principal
    membership = queries.list_members(principal.workspace).filter(user_id=user_id).first()
    if membership is None:
        raise errors.NotFound(_("There is no such member in this workspace."))
    if request.POST.get("remove"):
        services.remove_member(workspace=principal.workspace, user=membership.user)
        record_event(
            workspace=principal.workspace,
            actor=principal.actor,
            action="remove_member",
            subject_type="user",
            subject_id=membership.user.username,
        )
        messages.success(request, _("%(name)s is no longer a member.") % {"name": membership.user.username})
        return redirect("settings_members")
    services.set_role(workspace=principal.workspace, user=membership.user, role=request.POST.get("role", ""))
    record_event(
        workspace=principal.workspace,
        actor=principal.actor,
        action="set_role",
        subject_type="user",
        subject_id=membership.user.username,
        detail={"role": request.POST.get("role", "")},
    )
    messages.success(request, _("Saved."))
    return redirect("settings_members")


def _show_members(request: MemberRequest, form: NewMemberForm, status: int = 200) -> HttpResponse:
    every = queries.list_members(request.principal.workspace)
    page = page_of(request, every, order=queries.MEMBERS_ORDER, path=reverse("settings_members"))
    rows = [
        (membership, RoleForm(initial={"role": membership.role}, auto_id=f"role-{membership.user_id}"))
        for membership in page.items
    ]
    context = {
        "tabs": settings_tabs("settings_members", request.principal.role),
        "rows": rows,
        "page": page,
        "form": form,
        "me": request.user,
    }
    return render(request, "workspaces/members.html", context, status=status)
