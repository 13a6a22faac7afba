"""Checksums of rows, so that no value is taken for what was written unless it is."""

import json
import zlib
from collections.abc import Sequence
from typing import Any

from ewe.longterm.records import Scope

COUNTED = 1 << 32
"""What a count adds to a checksum for each thing counted, so that SQL can count on: the sum itself has 32 bits."""


def checksum(values: Sequence[Any]) -> int:
    """CRC-32 of a row's values; numbers count as the floats that the database may make of them."""
    # Adding 0.0 makes 0.0 of -0.0.
    plain = [value if value is None or isinstance(value, str) else float(value) + 0.0 for value in values]
    return zlib.crc32(json.dumps(plain).encode())


def is_intact(noted: object, values: Sequence[Any], count: object = 0) -> bool:
    """Whether a row's values, and what is counted above its checksum, are those that were written."""
    try:
        return isinstance(count, int) and checksum(values) + COUNTED * count == noted
    except (ValueError, TypeError):  # of a kind that nothing here writes
        return False


def scope_checksum(scope: Scope, memories: int) -> int:
    """Of a scope's row: its names, with the count of its memories."""
    return checksum((scope.user, scope.agent)) + COUNTED * memories
