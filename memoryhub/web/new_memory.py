"""A memory that a person writes."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memoryhub.common import errors
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.services.remembering import remember
from memoryhub.long_term_memory.services.writer import MemoryDraft, Remembered
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.memories import NewMemoryForm
from memoryhub.web.memory_actions import writer_of
from memoryhub.web.memory_filters import MemoryFilters
from memoryhub.web.memory_rows import memory_url


@require_http_methods(["GET", "POST"])
@member("editor")
def new_memory(request: MemberRequest) -> HttpResponse:
    """The form, filled from the list's filters; what came of it is said on the memory's page."""
    form = NewMemoryForm(request.POST) if request.method == "POST" else NewMemoryForm(initial=_from_filters(request))
    if request.method == "POST" and form.is_valid():
        try:
            result = remember(writer=writer_of(request), drafts=[_draft(form)])[0]
        except (errors.Invalid, errors.TooLarge, errors.Conflict, errors.TooMany) as error:
            form.add_error(None, error.detail)
        else:
            _say(request, result)
            if result.outcome != "recalled":
                return redirect(memory_url(result.id))
    status = 422 if form.is_bound else 200
    return render(request, "long_term_memory/new_memory.html", {"form": form}, status=status)


def _from_filters(request: MemberRequest) -> dict[str, str]:
    filters = MemoryFilters.read(request.GET)
    return {"agent": filters.agent, "user": filters.user, "project": filters.project, "tags": ", ".join(filters.tag)}


def _draft(form: NewMemoryForm) -> MemoryDraft:
    data = form.cleaned_data
    return MemoryDraft(
        content=data["content"],
        scope=ScopeNames(data["agent"] or None, data["user"] or None, data["project"] or None),
        subject=data["subject"],
        kind=data["kind"],
        importance=data["importance"],
        tags=data["tags"],
        pinned=data["pinned"],
        valid_until=data["valid_until"],
        expires_at=data["expires_at"],
    )


def _say(request: MemberRequest, result: Remembered) -> None:
    """Say what became of it: stored, known already, quarantined, secrets taken out."""
    if result.outcome == "recalled":
        messages.warning(
            request, _("This text carries the marks of a recall: it is a memory already and was not stored again.")
        )
        return
    if result.deduplicated:
        messages.info(request, _("This text is remembered already; here it is. Nothing was stored twice."))
        return
    messages.success(request, _("Remembered."))
    if result.redactions:
        messages.warning(request, _("It held a secret, which was taken out before it was stored."))
    if result.trust == "quarantined":
        messages.warning(
            request,
            _(
                "It reads like instructions to an agent, so it is quarantined until somebody accepts it in the review inbox."
            ),
        )
    if result.restorable:
        messages.info(
            request,
            _("The same text lies in the trash as %(id)s; you can restore it with its history instead.")
            % {"id": result.restorable},
        )
