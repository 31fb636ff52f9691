"""Log lines, each with the id of the request that caused it: plain for people, JSON for collectors."""

import json
import logging
import re
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str] = ContextVar("request_id", default="")
# A key of the hub may stand in a path, for clients that can't add a header; it never stands in a log.
_HUB_KEY = re.compile(r"mh_([A-Za-z0-9]{2})[A-Za-z0-9]{6}_[\w-]{20,}")


def _masked(text: str) -> str:
    return _HUB_KEY.sub(r"mh_\1…", text)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, request_id, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": _masked(record.getMessage()),
            "request_id": request_id.get(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class PlainFormatter(logging.Formatter):
    """A short line for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        origin = f" [{request_id.get()}]" if request_id.get() else ""
        line = f"{moment} {record.levelname.lower()} {record.name}{origin} {_masked(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
