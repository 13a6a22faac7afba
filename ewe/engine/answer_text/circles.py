"""Texts that go in circles: a sentence that never ends, because the same tokens come again and again."""

from collections.abc import Sequence

_LONGEST_PERIOD, _FEWEST_TOKENS = 64, 24


def goes_in_circles(ids: Sequence[int]) -> bool:
    """Whether tokens end in the same ones three times over, 24 or more in all."""
    near = ids[-3 * _LONGEST_PERIOD :]
    return any(_comes_again(near, period) for period in range(1, len(near) // 3 + 1))


def _comes_again(ids: Sequence[int], period: int) -> bool:
    length = max(3 * period, _FEWEST_TOKENS)
    tail = ids[-length:]
    return len(tail) == length and tail[period:] == tail[:-period]
