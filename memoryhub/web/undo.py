"""A message with a button that takes the change back. The button's change set travels in the message's extra tags."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest

_PREFIX = "undo:"


def offer(request: HttpRequest, text: str, change_set_id: str) -> None:
    """Say what was done, with an undo button where there is something to take back."""
    messages.success(request, text, extra_tags=f"{_PREFIX}{change_set_id}" if change_set_id else "")


def change_set_of(message: Any) -> str:
    """Return the change set that a message offers to undo, or nothing."""
    tags = message.extra_tags or ""
    return tags.removeprefix(_PREFIX) if tags.startswith(_PREFIX) else ""
