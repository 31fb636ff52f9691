"""Shapes of the checks: validate, plan, diagnose, simulate."""

from typing import Annotated, Any, Literal, get_args

from ninja import Field, Schema
from pydantic import ConfigDict

from memoryhub.api.schemas.base import InShape
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.doctor import Diagnosis
from memoryhub.prompt_cache.domain.planner import Plan
from memoryhub.prompt_cache.domain.simulator import Replay, Simulation
from memoryhub.prompt_cache.domain.validator import Finding

MOST_REQUESTS = 500
PlanName = Literal["none", "auto-5m", "1h", "mixed", "keepalive", "actual"]
_SYSTEM: list[Any] = [{"type": "text", "text": "You review code.", "cache_control": {"type": "ephemeral"}}]
EXAMPLE_REQUEST: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "max_tokens": 1024,
    "system": _SYSTEM,
    "messages": [{"role": "user", "content": "Look at main.py."}],
}
_EXAMPLE_USAGE: dict[str, Any] = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 4600,
    "cache_read_input_tokens": 0,
}
_EXAMPLE_EXCHANGE: Any = {"request": EXAMPLE_REQUEST, "usage": _EXAMPLE_USAGE, "started_at": "2026-11-29T10:00:00Z"}


def shortest_usd(pico: int | None) -> str | None:
    """Return an amount without trailing zeros: "0.02208", "0"."""
    if pico is None:
        return None
    text = f"{money.usd(pico):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def finding_out(finding: Finding) -> dict[str, Any]:
    """Return code, path and message, `http` for errors, and what the code measures, such as `tokens` and `minimum`."""
    http = {"http": finding.http} if finding.level == "error" else {}
    return {"code": finding.code, "path": finding.path, **http, **finding.facts, "message": finding.message}


class ValidationOut(Schema):
    """Each finding has code, path and message; errors have `http`; others what they measure, such as tokens and minimum."""

    ok: bool
    errors: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    advice: list[dict[str, Any]]

    @staticmethod
    def of(findings: list[Finding]) -> "ValidationOut":
        def of_level(level: str) -> list[dict[str, Any]]:
            return [finding_out(finding) for finding in findings if finding.level == level]

        errors = of_level("error")
        return ValidationOut(ok=not errors, errors=errors, warnings=of_level("warning"), advice=of_level("advice"))


class MarkerOut(Schema):
    path: str
    ttl: str
    why: str
    break_even_reads: int


class PlanOut(Schema):
    """The request with markers added, ready to be sent, and why each stands there."""

    body: dict[str, Any]
    markers: list[MarkerOut]

    @staticmethod
    def of(plan: Plan) -> "PlanOut":
        markers = [
            MarkerOut(path=one.path, ttl=one.ttl, why=one.why, break_even_reads=one.break_even_reads)
            for one in plan.markers
        ]
        return PlanOut(body=plan.body, markers=markers)


class DiagnoseIn(InShape):
    """Two neighbouring requests: each `{request, usage, started_at, first_byte_at, diagnostics}` or a bare request body."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"previous": _EXAMPLE_EXCHANGE, "current": _EXAMPLE_EXCHANGE}}
    )

    previous: dict[str, Any] | None = None
    current: dict[str, Any]
    history: Annotated[list[dict[str, Any]], Field(max_length=MOST_REQUESTS)] = []


class DiagnosisOut(Schema):
    verdict: Literal["first", "hit", "miss"]
    cause: str
    detail: str | None
    path: str | None
    offset: int | None
    kind: str | None
    before: str | None
    after: str | None
    expected_tokens: int
    read_tokens: int
    missed_tokens: int
    missed_usd: str | None
    provider_reason: str | None
    agrees: bool | None
    also: list[str]
    fix: str
    basis: Literal["body", "hashes", "usage"]
    estimated: bool

    @staticmethod
    def of(diagnosis: Diagnosis) -> "DiagnosisOut":
        values = {name: getattr(diagnosis, name) for name in DiagnosisOut.model_fields if hasattr(diagnosis, name)}
        return DiagnosisOut(
            **{**values, "also": list(diagnosis.also), "missed_usd": shortest_usd(diagnosis.missed_pico)}
        )


class SimulateIn(InShape):
    """A recorded session, or requests that are sent along."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"session": "s1", "plans": ["auto-5m", "1h", "actual"]}}
    )

    session: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    requests: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_REQUESTS)] | None = None
    plans: Annotated[list[PlanName], Field(min_length=1)] = list(get_args(PlanName))


class ReplayOut(Schema):
    plan: str
    cost_usd: str | None
    hit_rate: float | None
    regret_usd: str | None
    input_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    cache_read_tokens: int
    pings: int

    @staticmethod
    def of(replay: Replay, simulation: Simulation) -> "ReplayOut":
        return ReplayOut(
            plan=replay.plan,
            cost_usd=shortest_usd(replay.cost_pico),
            hit_rate=None if replay.hit_rate is None else round(replay.hit_rate, 6),
            regret_usd=shortest_usd(simulation.regret_pico(replay)),
            input_tokens=sum(bill.input for bill in replay.bills),
            cache_write_5m_tokens=sum(bill.cache_write_5m for bill in replay.bills),
            cache_write_1h_tokens=sum(bill.cache_write_1h for bill in replay.bills),
            cache_read_tokens=sum(bill.cache_read for bill in replay.bills),
            pings=replay.pings,
        )


class SimulationOut(Schema):
    """`calibration_error` is the share of tokens that a replay of the real markers puts in another counter than the bill."""

    calibration_error: float | None
    requests: int
    basis: str = Field(description="What the replay rests on: requests, usage, or mixed.")
    truncated: bool
    plans: list[ReplayOut]

    @staticmethod
    def of(simulation: Simulation, *, requests: int, basis: str, truncated: bool) -> "SimulationOut":
        error = simulation.calibration_error
        return SimulationOut(
            calibration_error=None if error is None else round(error, 6),
            requests=requests,
            basis=basis,
            truncated=truncated,
            plans=[ReplayOut.of(replay, simulation) for replay in simulation.replays],
        )
