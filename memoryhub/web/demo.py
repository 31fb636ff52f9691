"""The demo at the push of a button: loaded by a job, and taken away with every row of it."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from memoryhub.common import clock
from memoryhub.flows.demo.load import remove_demo as remove
from memoryhub.web import formats
from memoryhub.web.access import WORKSPACE_SESSION_KEY, MemberRequest, member
from memoryhub.work.services import enqueue_job

ONE_LOAD_A_MINUTE = 60  # a second click finds the first one's job


@require_POST
@member("admin")
def load_demo(request: MemberRequest) -> HttpResponse:
    """Leave a job that fills the demo's workspace; it belongs to the hub, for the demo may be where the person stands."""
    slot = int(clock.now().timestamp()) // ONE_LOAD_A_MINUTE
    job = enqueue_job(workspace=None, kind="load_demo", idempotency_key=f"load_demo:{slot}")
    request.session.pop(WORKSPACE_SESSION_KEY, None)  # so that the page after the load is the demo's
    messages.info(request, _("The demo is being loaded. When the job is done, the next page you open is the demo's."))
    return redirect("job", job.public_id)


@require_POST
@member("admin")
def remove_demo(request: MemberRequest) -> HttpResponse:
    """Remove the demo's workspace; only there does this do anything."""
    removed = remove(workspace=request.principal.workspace)
    request.session.pop(WORKSPACE_SESSION_KEY, None)
    messages.success(request, _("The demo is gone: %(n)s rows.") % {"n": formats.count(removed)})
    return redirect("overview")
