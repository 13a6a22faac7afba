"""Counts in words for people to read.

Owns: the singular. Knows nobody.
"""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """ "1 passage", "1,234 passages"; plural: where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
