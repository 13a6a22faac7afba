"""The server's log: one line per event, for people or as JSON; no bodies, no keys."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Literal

from starlette.types import Scope

_log = logging.getLogger("ewe.server")
_QUIET = frozenset({"/health", "/ready", "/metrics"})


def set_up_logs(form: Literal["text", "json"]) -> None:
    """Has the server's log, and uvicorn's, written to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(form))
    for name, level in (("ewe.server", logging.INFO), ("ewe.longterm", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False


def log_request(scope: Scope, request_id: str, status: int, seconds: float) -> None:
    """One line for a request; probes that go well leave none. status 0: the client had gone before the answer."""
    path = scope["path"]
    if path in _QUIET and status == 200:
        return
    fields = {"method": scope["method"], "path": path, "status": status, "seconds": round(seconds, 4)}
    _log.info("request", extra={"fields": {"request_id": request_id, **fields}})


class _Formatter(logging.Formatter):
    def __init__(self, form: Literal["text", "json"]) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        error = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        if self._form == "json":
            head = {"time": when, "level": record.levelname.lower(), "event": record.getMessage()}
            return json.dumps({**head, **fields, **error}, ensure_ascii=True)
        told = "".join(f" {key}={json.dumps(value) if ' ' in str(value) else value}" for key, value in fields.items())
        line = f"{when} {record.levelname.lower()} {_one_line(record.getMessage())}{_one_line(told)}"
        return "\n".join([line, *error.values()])


def _one_line(text: str) -> str:
    """Nobody writes lines of their own into the log."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
