"""Text that an agent was given, written so that it stays data.

Owns: the one-line JSON of observations. Whatever a text holds, no line, no bracket of a control token and no label of a
step can come out of it. Knows how judges quote; no prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ewe.verification.judges.llm_judge import quote

_SPECIAL = "<>[]"
_DEEPEST = 64


def as_data(value: Any, depth: int = 0) -> str:
    """JSON on one line, of what `ewe.report.jsonable` gives; strings in it hold no angle or square bracket as such.

    What is nested more than 64 levels deep is left out.
    """
    if depth > _DEEPEST:
        return '"(nested too deeply)"'
    if isinstance(value, str):
        return _visible(quote(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{as_data(str(key))}: {as_data(item, depth + 1)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(as_data(item, depth + 1) for item in value) + "]"
    return json.dumps(value, allow_nan=False)


def one_line(text: str) -> str:
    """A text of the model's own on one line, with every bracket and every invisible character as an escape."""
    flat = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return _visible("".join(_escape(character) if character in _SPECIAL else character for character in flat))


def _visible(text: str) -> str:
    """Separators of lines, directions of text and the like as escapes: models and terminals read some as line ends."""
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if ord(character) > 0xFFFF else f"\\u{ord(character):04x}"
