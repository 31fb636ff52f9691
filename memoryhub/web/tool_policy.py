"""One tool's policy: read it, change it."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memoryhub.session_cache.queries.policies import find_policy
from memoryhub.session_cache.services.policies import BadPolicy, set_tool_policy
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.tool_policy import ToolPolicyForm


@require_http_methods(["GET", "POST"])
@member("editor")
def tool_policy(request: MemberRequest) -> HttpResponse:
    """The form of the tool that the address names; a tool without a policy gets its first one."""
    tool = (request.POST.get("tool") or request.GET.get("tool", "")).strip()
    policy = find_policy(request.principal.workspace, tool) if tool else None
    form = ToolPolicyForm.of(policy)
    if request.method == "POST":
        form = ToolPolicyForm(request.POST)
        if form.is_valid():
            try:
                set_tool_policy(
                    workspace=request.principal.workspace,
                    tool=tool,
                    choice=form.choice(policy),
                    actor=request.principal.actor,
                )
            except BadPolicy as error:
                form.add_error(None, error.detail)
            else:
                messages.success(request, _("The policy of %(tool)s is stored.") % {"tool": tool})
                return redirect("tool_cache")
    context = {"tool": tool, "form": form, "is_new": policy is None}
    return render(request, "session_cache/tool_policy.html", context, status=422 if form.errors else 200)
