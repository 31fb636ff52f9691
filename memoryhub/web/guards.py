"""The guards of memory: what is done with secrets, instruction-like text, unknown agents and floods of writes."""

from dataclasses import asdict

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from memoryhub.long_term_memory.queries.guards import get_guard_settings
from memoryhub.long_term_memory.services.guarding import save_guard_settings
from memoryhub.long_term_memory.services.writer import InvalidMemory, Writer
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.decay import GuardForm
from memoryhub.web.settings import settings_tabs


@require_GET
@member("admin")
def guards(request: MemberRequest) -> HttpResponse:
    """Show the guards."""
    return _show(request, GuardForm(initial=asdict(get_guard_settings(request.principal.workspace))))


@require_POST
@member("admin")
def change_guards(request: MemberRequest) -> HttpResponse:
    """Change them."""
    form = GuardForm(data=request.POST)
    if form.is_valid():
        try:
            save_guard_settings(writer=Writer.of(request.principal, door="web"), changes=form.cleaned_data)
            messages.success(request, _("Saved."))
            return redirect("settings_guards")
        except InvalidMemory as error:
            form.add_error(None, error.detail)
    return _show(request, form, status=422)


def _show(request: MemberRequest, form: GuardForm, status: int = 200) -> HttpResponse:
    context = {"tabs": settings_tabs("settings_guards", request.principal.role), "form": form}
    return render(request, "workspaces/guards.html", context, status=status)
