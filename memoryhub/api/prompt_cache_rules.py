"""Checks of requests: validate and plan before sending, diagnose and simulate afterwards. What is sent here is not stored."""

from typing import Annotated, Any

from ninja import Body, Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.schemas.prompt_cache_rules import (
    EXAMPLE_REQUEST,
    DiagnoseIn,
    DiagnosisOut,
    PlanOut,
    SimulateIn,
    SimulationOut,
    ValidationOut,
)
from memoryhub.prompt_cache.queries import checks, replays

router = Router(tags=["Prompt cache"])
RequestBody = Annotated[
    dict[str, Any],
    Body(
        description="A Messages request body, or `{request, history, batch, usage, started_at}` around one.",
        examples=[EXAMPLE_REQUEST],
    ),
]


@router.post(
    "/prompt-cache/validate",
    auth=requires("usage:read"),
    response=ValidationOut,
    operation_id="validateRequest",
    summary="Check a request before it is sent",
)
def validate_request(request: ApiRequest, body: RequestBody) -> Any:
    """Errors are what the provider answers with 400, warnings what it silently does not cache, advice what history teaches."""
    return ValidationOut.of(checks.check_request(request.principal.workspace, body))


@router.post(
    "/prompt-cache/plan",
    auth=requires("usage:read"),
    response=PlanOut,
    operation_id="planRequest",
    summary="Place cache_control in a request",
)
def plan_request(request: ApiRequest, body: RequestBody) -> Any:
    """At most four markers, the caller's own among them, each with its reason; nothing else of the body changes."""
    return PlanOut.of(checks.plan_request(request.principal.workspace, body))


@router.post(
    "/prompt-cache/diagnose",
    auth=requires("usage:read"),
    response=DiagnosisOut,
    operation_id="diagnoseRequest",
    summary="Say why a request missed the cache",
)
def diagnose_request(request: ApiRequest, body: DiagnoseIn) -> Any:
    """Names the cause, the place, the text that differs, the missed tokens and dollars, and what to change."""
    found = checks.diagnose_requests(
        request.principal.workspace, previous=body.previous, current=body.current, history=body.history
    )
    return DiagnosisOut.of(found)


@router.post(
    "/prompt-cache/simulate",
    auth=requires("usage:read"),
    response=SimulationOut,
    operation_id="simulatePlans",
    summary="Replay a session under other caching plans",
)
def simulate_plans(request: ApiRequest, body: SimulateIn) -> Any:
    """What each plan would have cost, its distance from the cheapest, and how well the replay explains the real bill."""
    workspace = request.principal.workspace
    if body.requests is not None and body.session is None:
        result = replays.replay_requests(workspace, requests=body.requests, plans=body.plans)
    elif body.session is not None and body.requests is None:
        result = replays.replay_session(workspace, session=body.session, plans=body.plans, only=bound(request))
    else:
        raise replays.NothingToReplayError("Send either `session` or `requests`.")
    return SimulationOut.of(result.simulation, requests=result.requests, basis=result.basis, truncated=result.truncated)


def bound(request: ApiRequest) -> dict[str, str]:
    """Return what the key is tied to: it sees no other records."""
    binding = request.principal.binding
    places = {"agent": binding.agent, "user": binding.user, "project": binding.project}
    return {name: value for name, value in places.items() if value}
