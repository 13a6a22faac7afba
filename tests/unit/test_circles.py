"""Sentences that never end."""

from hypothesis import given
from hypothesis import strategies as st

from ewe.engine.answer_text.circles import goes_in_circles


@given(st.lists(st.integers(0, 9), max_size=80), st.lists(st.integers(0, 9), min_size=1, max_size=64))
def test_what_comes_three_times_over_goes_in_circles(before: list[int], period: list[int]) -> None:
    assert goes_in_circles(before + period * max(3, -(-24 // len(period))))


@given(st.lists(st.integers(0, 9), max_size=80))
def test_what_never_comes_again_does_not(before: list[int]) -> None:
    assert not goes_in_circles([*before, *range(10, 20)])
    assert not goes_in_circles([*range(100), *[1, 2] * 5])  # ten tokens: "ha ha ha"
