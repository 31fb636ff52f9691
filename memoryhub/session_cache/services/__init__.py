"""Writes of the session cache, one file per noun. Other packages import from the files; imports are offered here too.

import_events(workspace=..., session=..., events=(event_of_line(line) for line in lines))
"""

from memoryhub.session_cache.domain.transcript_events import ImportedEvent, event_of_line
from memoryhub.session_cache.services.imports import ImportReport, import_events

__all__ = ["ImportReport", "ImportedEvent", "event_of_line", "import_events"]
