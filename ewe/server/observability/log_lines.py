"""Lines of the log: one for each event, of a bounded length, without what users wrote."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Literal

PROBES = frozenset({"/health", "/metrics", "/ping", "/ready"})
_LONGEST = 2000  # characters of a line, or in JSON of one of its texts
_MOST_FRAMES = 8  # of an error, the last ones
_MOST_CAUSES = 4
_REPEAT_AFTER_S = 60.0
# Of paths, what a server of ours has; all else may be a name, a word or a text of somebody's.
_WORDS = frozenset(
    (
        *("v1", "v2", "batches", "cancel", "chat", "completions", "content", "count_tokens", "detokenize", "docs"),
        *("embed", "embeddings", "feedback", "files", "health", "history", "input_items", "input_tokens", "memories"),
        *("messages", "metrics", "models", "openapi.json"),
        *("page", "icon.svg", "memories.js", "page.css", "page.js", "start.json", "ping", "ready", "rerank"),
        *("responses", "restore", "search", "superseded", "tokenize", "verify", "version", "why"),
    )
)
_MOST_SEGMENTS = 8
_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})


def shown_path(path: str) -> str:
    """A path with "*" for what no route spells: ids, names of models, and whatever was made up."""
    segments = path.split("/", _MOST_SEGMENTS)
    return "/".join(segment if not segment or segment in _WORDS else "*" for segment in segments)


def shown_method(method: str) -> str:
    """A method of HTTP; "*" for one that was made up."""
    return method if method in _METHODS else "*"


class LogFormatter(logging.Formatter):
    """One line for each record, as text or as a JSON object."""

    def __init__(self, form: Literal["text", "json"]) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = dict(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = error_summary(record.exc_info[1])
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        level, message = record.levelname.lower(), record.getMessage()
        if self._form == "json":
            texts = {"time": when, "level": level, "event": message, **fields}
            return json.dumps({name: _shortened(value) for name, value in texts.items()}, ensure_ascii=True)
        pairs = "".join(f" {key}={json.dumps(value) if ' ' in str(value) else value}" for key, value in fields.items())
        return f"{when} {level} {_one_line(_shortened(message + pairs))}"


_start_form: Literal["text", "json"] = "text"


def say_as(form: Literal["text", "json"]) -> None:
    """Has what is said of the start written as bare text, or as the log's JSON objects."""
    global _start_form
    _start_form = form


def say(line: str) -> None:
    """One line of the start on standard error, at once."""
    if _start_form == "json":
        level = "WARNING" if line.startswith("warning: ") else "INFO"
        line = LogFormatter("json").format(logging.makeLogRecord({"msg": line, "levelname": level}))
    print(line, file=sys.stderr, flush=True)


class OnceAMinute(logging.Filter):
    """Lets the warnings of each place through once a minute, with how many there were. now: seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._next: dict[Hashable, float] = {}
        self._left_out: dict[Hashable, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        if record.levelno > logging.WARNING:
            return True
        place, now = (record.pathname, record.lineno), self._now()
        if now < self._next.get(place, now):
            self._left_out[place] = self._left_out.get(place, 0) + 1
            return False
        self._next[place] = now + _REPEAT_AFTER_S
        if left_out := self._left_out.pop(place, 0):
            record.fields = {"left_out_before": left_out}
        return True


def error_summary(error: BaseException) -> str:
    """An error and its causes by their types and places; their messages may quote what a user sent."""
    return "; from ".join(f"{type(each).__name__} at {_places(each)}" for each in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _places(error: BaseException) -> str:
    """Where it was raised, and by whose calls, the last first."""
    frames = [(frame.f_globals.get("__name__", "?"), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return " < ".join(f"{module}:{line}" for module, line in reversed(frames[-_MOST_FRAMES:])) or "?"


def _shortened(value: Any) -> Any:
    return f"{value[:_LONGEST]}..." if isinstance(value, str) and len(value) > _LONGEST else value


def _one_line(text: str) -> str:
    """Nobody writes lines of their own into the log."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
