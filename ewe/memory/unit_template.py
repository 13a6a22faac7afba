"""The text of a unit from a template such as "{title}: {text}" and the fields of a passage."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ewe.errors import ConfigError

FIELDS = ("title", "text", "source", "date")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_BRACKETS = {"(": ")", "[": "]", '"': '"'}


def check_template(template: str) -> None:
    """Raise ConfigError if a template lacks {text} or names a field that passages do not have."""
    names = _PLACEHOLDER.findall(template)
    unknown = sorted(set(names) - set(FIELDS))
    if unknown:
        raise ConfigError(f"unit_template: unknown field {{{unknown[0]}}}; known: {', '.join(FIELDS)}")
    if "text" not in names:
        raise ConfigError("unit_template must contain {text}")


def fill_template(template: str, fields: Mapping[str, str]) -> str:
    """The template with the fields filled in, in one pass: braces inside a field stay as they are.

    An empty field takes its surroundings with it, so that "{title}: {text}" without a title is the text alone: its
    line if nothing else is filled in on it, else the brackets around it, else the separator to the next field (for
    the last field of a line, from the one before).
    """
    lines = (_fill_line(line, fields) for line in template.split("\n"))
    return "\n".join(line for line in lines if line is not None)


def _fill_line(line: str, fields: Mapping[str, str]) -> str | None:
    """One line filled in; None if it has fields and all of them are empty."""
    parts = _PLACEHOLDER.split(line)
    literals, values = parts[::2], [fields[name] for name in parts[1::2]]
    if values and not any(values):
        return None
    for index, value in enumerate(values):
        if not value:
            before, after = literals[index], literals[index + 1]
            literals[index], literals[index + 1] = _without_field(before, after, index == len(values) - 1)
    line = literals[0] + "".join(value + literal for value, literal in zip(values, literals[1:], strict=True))
    return line if all(values) else line.strip()


def _without_field(before: str, after: str, is_last: bool) -> tuple[str, str]:
    """What is left of the literals on both sides of an empty field."""
    opening = max(before.rfind(bracket) for bracket in _BRACKETS)
    if opening >= 0 and after.startswith(_BRACKETS[before[opening]]):
        return before[:opening].rstrip(), after[1:]
    return ("", after) if is_last else (before, "")
