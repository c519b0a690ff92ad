"""Structured logs: one JSON object a line on standard error, nothing of an attendee's in it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_log = logging.getLogger("gpulab.service")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": when, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "values", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure(level: str) -> None:
    """Send everything, tornado's and asyncio's own warnings included, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    _log.setLevel(level.upper())


def info(event: str, **values: Any) -> None:
    """Log that something happened."""
    _log.info(event, extra={"values": values})


def debug(event: str, **values: Any) -> None:
    """Log what only matters when something is looked for."""
    _log.debug(event, extra={"values": values})


def error(event: str, *, failure: BaseException | None = None, **values: Any) -> None:
    """Log a fault of the lab, with its traceback where there is one."""
    _log.error(event, exc_info=failure, extra={"values": values})
