"""The server's log: one line per event, as logfmt or JSON (docs/security.md, "Logs").

Every line has `time`, `level`, `logger` and `message`; lines that belong to a request have its
`request_id`, and the line at the end of a request has `method`, `route`, `status` and `ms`. A line
about a failure has `error` (the type of the exception) and `where` (file:line). No line holds a
worker's id or what people wrote.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Style = Literal["text", "json"]
FRAMES = 4
"""Frames of an exception that a line names, the innermost first."""
request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the request that is being answered; threads in which routes run inherit it."""
_BARE = re.compile(r"[^\s=\"\\]+")


class LogFormatter(logging.Formatter):
    """Writes a record as one line."""

    def __init__(self, style: Style = "text") -> None:
        super().__init__()
        self.style = style

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record; its attribute `fields` holds further fields."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id.get():
            line["request_id"] = request_id.get()
        line |= getattr(record, "fields", {})
        if self.style == "json":
            return json.dumps(line, ensure_ascii=False)
        return " ".join(f"{name}={_text(value)}" for name, value in line.items())


def open_log(style: Style = "text", level: str = "info") -> None:
    """Write the server's log to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter(style))
    for name, least in (("goldspan", level.upper()), ("uvicorn", "WARNING")):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(least)


def fields_of(error: BaseException) -> dict[str, str]:
    """Return the fields of an exception: its type, and where it was raised, innermost frame first.

    Its message is left out: it may hold what people wrote.
    """
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    where = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames))
    return {"error": type(error).__name__, "where": where}


def _text(value: Any) -> str:
    """Write a value of logfmt; line breaks and quotes are escaped as in JSON."""
    text = str(value)
    return text if _BARE.fullmatch(text) else json.dumps(text, ensure_ascii=False)
