import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.errors import ConfigError
from ewe.types import Passage, Verdict
from ewe.verification.combination import JudgedPiece, Thresholds, combine, combined, verdicts

FLOOR = 1 / 3


def test_a_side_needs_its_threshold_and_more_than_the_other():
    shares = np.array([[0.8, 0.1, 0.1], [0.5, 0.1, 0.4], [0.1, 0.5, 0.4], [0.1, 0.8, 0.1], [0.45, 0.45, 0.1]])
    assert verdicts(shares, Thresholds(0.6, 0.7)).tolist() == [0, 2, 2, 1, 2]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1)), max_size=5),
    st.floats(0.01, 1),
    st.floats(0.01, 1),
)
def test_verdicts_of_shares_are_those_of_evidence(rows, supported, refuted):
    thresholds = Thresholds(supported, refuted, FLOOR)
    pieces = [
        JudgedPiece(Passage(str(i), "t"), "t", (a / (a + b + c), b / (a + b + c), c / (a + b + c)))
        for i, (a, b, c) in enumerate(rows)
    ]
    [number] = verdicts(combined(pieces, FLOOR)[None], thresholds)
    assert combine(pieces, thresholds).verdict is list(Verdict)[number]


@pytest.mark.parametrize("values", [(0.0, 0.5, 0.3), (0.5, 1.1, 0.3), (0.5, 0.5, 1.0), (0.5, 0.5, -0.1)])
def test_thresholds_out_of_range_are_refused(values):
    with pytest.raises(ConfigError):
        Thresholds(*values)
