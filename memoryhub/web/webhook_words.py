"""The words for what webhooks hear, and for how they took it."""

from typing import Any

from django.utils.translation import gettext_lazy

EVENT_LABELS: dict[str, Any] = {
    "memory.created": gettext_lazy("New memories"),
    "memory.updated": gettext_lazy("Changed memories"),
    "memory.removed": gettext_lazy("Forgotten and erased memories"),
    "memory.faded": gettext_lazy("Memories that faded"),
    "cache.invalidated": gettext_lazy("Invalidated tool results"),
    "prices.changed": gettext_lazy("Changed prices"),
    "settings.changed": gettext_lazy("Changed settings, keys and members"),
    "test": gettext_lazy("Test message"),
}
PROBLEM_WORDS: dict[str, Any] = {
    "status": gettext_lazy("It refused the message."),
    "private": gettext_lazy("It leads into a private network; MEMORYHUB_WEBHOOKS_PRIVATE allows that."),
    "certificate": gettext_lazy("Its certificate is not trusted."),
    "timeout": gettext_lazy("It did not answer in time."),
    "unreachable": gettext_lazy("It could not be reached."),
}
