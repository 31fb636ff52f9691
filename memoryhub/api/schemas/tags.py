"""Shapes of tags."""

from typing import Annotated

from ninja import Schema
from pydantic import Field

from memoryhub.api.schemas.base import InShape
from memoryhub.api.schemas.memories import Names, TagName


class TagOut(Schema):
    name: str
    count: int


class TagPage(Schema):
    items: list[TagOut]
    next_cursor: str | None


class TagRename(InShape):
    from_: TagName = Field(alias="from")
    to: TagName
    reason: Names = ""


class TagMerge(InShape):
    """Several tags become one."""

    from_: TagName | Annotated[list[TagName], Field(min_length=1, max_length=100)] = Field(alias="from")
    to: TagName
    reason: Names = ""
