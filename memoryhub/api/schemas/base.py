"""What all shapes share."""

from datetime import UTC, datetime
from typing import Annotated

from ninja import Schema
from pydantic import AfterValidator, AwareDatetime, ConfigDict, PlainSerializer


class InShape(Schema):
    """A body that we read: unknown fields are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid")


def as_utc_text(moment: datetime) -> str:
    """Return the moment as `2026-11-29T21:40:00.123456Z`."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


UtcTime = Annotated[datetime, PlainSerializer(as_utc_text, return_type=str)]
GivenTime = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]
