"""A claim says of which, where its passage tells several apart."""

import pytest

from ewe.verification.left_out import leaves_out_which

FULL = "Full-time employees get 28 days."


@pytest.mark.parametrize(
    ("claim", "sentence", "rest", "is_left_out"),
    [
        ("Employees get 28 days.", FULL, "Part-time employees get 16 days.", True),
        ("Full-time employees get 28 days.", FULL, "Part-time employees get 16 days.", False),
        ("Employees get 28 days.", FULL, "The employees like it.", False),
        ("The bridge was built in 1803.", "The stone bridge was built in 1803.", "An iron bridge is new.", True),
        ("The bridge was built in 1803.", "The old stone bridge was built in 1803.", "The stone bridge fell.", False),
    ],
)
def test_what_tells_two_things_apart_is_not_left_out(claim: str, sentence: str, rest: str, is_left_out: bool) -> None:
    assert leaves_out_which(claim, sentence, f"{sentence} {rest}") is is_left_out
