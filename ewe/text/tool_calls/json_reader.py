"""JSON in a text that is still being written: where an object or a list ends, and what it holds."""

import json
import re
from typing import Any, NoReturn

_CLOSES = {"{": "}", "[": "]"}
# A string, a bracket, or what else may stand between them; a string without its end matches as _OPEN_STRING.
_PART = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[\s,:\w.+-]+', re.DOTALL)
_OPEN_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+\\?\Z', re.DOTALL)


class NeedsMoreError(Exception):
    """What has been read so far is right, and not complete."""


class MalformedError(Exception):
    """No further text makes this right."""


def read_json(text: str, start: int) -> tuple[Any, int]:
    """The object or list that begins at the code point `start`, and where it ends.

    Line breaks inside strings are forgiven, since models write them. Raises NeedsMoreError or MalformedError; which of
    them, and at which end, does not change when the text goes on.
    """
    end = _end_of(text, start)
    try:
        return json.loads(text[start:end], strict=False, parse_constant=_refuse), end
    except (ValueError, RecursionError) as error:
        raise MalformedError from error


def write_json(value: Any) -> str:
    """A value as JSON, as chat templates write it; raises MalformedError for numbers that JSON has none for."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair can only be spelled as an escape
        text = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise MalformedError from error
    return text


def _end_of(text: str, start: int) -> int:
    if start >= len(text):
        raise NeedsMoreError
    if text[start] not in _CLOSES:
        raise MalformedError
    awaited: list[str] = []
    position = start
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise NeedsMoreError if _OPEN_STRING.match(text, position) else MalformedError
        position = part.end()
        token = part.group()
        if token in _CLOSES:
            awaited.append(_CLOSES[token])
        elif token in ("}", "]"):
            if awaited.pop() != token:
                raise MalformedError
            if not awaited:
                return position
    raise NeedsMoreError


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
