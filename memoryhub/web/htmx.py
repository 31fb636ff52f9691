"""When to answer a part of a page instead of the whole."""

from django.http import HttpRequest


def wants_part(request: HttpRequest) -> bool:
    """Tell whether htmx asks for a part; Back and Forward restore whole pages, so they never get a bare fragment."""
    htmx = getattr(request, "htmx", None)
    return bool(htmx and not htmx.history_restore_request)
