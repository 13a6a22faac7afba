"""Turns what generations hold into what JSON can hold."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


def jsonable(value: Any) -> Any:
    """A copy of `value` that strict JSON accepts: NaN and infinities become None, unknown objects their text.

    Components that users bring may put anything into an event; the trace must still be written.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be written to a file
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(jsonable(key)): jsonable(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # numpy scalars and arrays, tensors
        return jsonable(value.tolist())
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [jsonable(item) for item in value]
    return str(value)
