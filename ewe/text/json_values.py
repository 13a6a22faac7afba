"""Values of JSON that can be sent on: Python reads more than JSON in UTF-8 can say, and deeper than it can write."""

import math
from typing import Any

MOST_LEVELS = 200
"""Of objects and lists in each other: what copies or writes them goes one call deeper with each."""


def members(value: Any) -> list[Any]:
    """What an object or a list holds; of anything else nothing."""
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def check_json(value: Any) -> None:
    """Raises ValueError for half of a character, a number that is none, or more than MOST_LEVELS levels."""
    level = [value]
    for _ in range(MOST_LEVELS + 1):
        for item in level:
            _check_single(item)
        holders = [item for item in level if isinstance(item, dict | list)]
        if not holders:
            return
        level = [member for holder in holders for member in members(holder)]
    raise ValueError(f"more than {MOST_LEVELS} levels of objects and lists in each other")


def _check_single(value: Any) -> None:
    """Looks at a text, a number, or the names in an object."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("NaN and infinities are no JSON: leave the number out, or send null")
    for text in value if isinstance(value, dict) else [value]:
        if isinstance(text, str):
            check_unicode(text)


def check_unicode(text: str) -> None:
    """Raises ValueError for a string that is no Unicode, which JSON can spell."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"half of a surrogate pair at {error.start}") from error
