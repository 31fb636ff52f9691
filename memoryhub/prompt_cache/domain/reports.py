"""A response as somebody reports it to the hub: an agent over REST, the proxy, or a tracked client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memoryhub.prompt_cache.domain.model_ids import normalise_model
from memoryhub.prompt_cache.domain.sightings import Place, Sighting
from memoryhub.prompt_cache.domain.usage import Convention, UsageError, read_usage

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What a caller says about one response. `usage` is the provider's object as it came."""

    model: str
    usage: Mapping[str, Any]
    message_id: str = ""
    request_id: str = ""
    source: str = "rest"
    convention: Convention | None = None
    started_at: datetime | None = None
    first_byte_at: datetime | None = None
    ended_at: datetime | None = None
    session: str = ""
    agent: str = ""
    project: str = ""
    user: str = ""
    diagnostics: Any = None
    cut: bool = False  # the stream ended before the response did


def sightings_of_report(report: UsageReport, now: datetime) -> list[Sighting]:
    """One sighting per billed part. `now` stands in for a time that the report leaves out."""
    key = report.message_id or report.request_id
    if not key:
        raise UsageError("message_id", "is missing, and so is request_id; one of them must name the response")
    usage = read_usage(report.usage, report.convention)
    chain = f"{report.session}/{report.agent}" if report.session and report.agent else report.session
    sightings = []
    for part in usage.parts:
        model = normalise_model(part.model or report.model)
        sightings.append(
            Sighting(
                key=key,
                part=part.index,
                kind=part.kind,
                source=report.source,
                model=model.name[:LONGEST_NAME],
                region=model.region,
                stated=part.stated,
                convention=usage.convention,
                occurred_at=report.started_at or report.ended_at or now,
                started_at=report.started_at,
                first_byte_at=report.first_byte_at,
                ended_at=report.ended_at,
                service_tier=usage.service_tier,
                speed="" if part.kind == "advisor_message" else usage.speed,
                inference_geo=usage.inference_geo,
                request_id=report.request_id,
                place=Place(report.session, report.project, report.agent, report.user, chain),
                diagnostics=report.diagnostics if part.index == 0 else None,
                cut=report.cut,
            )
        )
    return sightings
