"""How much structure JSON has, before it is parsed."""

MOST_NUMBERS = 1 << 17
"""Values of one body, counted by commas and brackets; only tokens may be so many."""


def num_values(text: bytes) -> int:
    """About how many values there are: commas and brackets are counted, those in texts too."""
    return sum(map(text.count, (b",", b"[", b"{")))
