"""Laying rows out flat."""

from __future__ import annotations

import numpy as np
import pytest

from ewe.engine.attention.metadata import ForwardRow, place_rows


def slots(begin, count):
    return np.arange(begin, begin + count)


def test_single_tokens_come_first_by_length_and_logits_keep_the_callers_order():
    rows = [
        ForwardRow([1, 2, 3], 7, slots(10, 5)),
        ForwardRow([4], 9, slots(20, 8), (slots(40, 6),), (1.0,)),
        ForwardRow([5, 6], 0, slots(30, 2), wants_logits=False),
        ForwardRow([7], 3, slots(50, 4)),
        ForwardRow([8, 9], 0, slots(60, 2), all_logits=True),
    ]
    batch = place_rows(rows, "paper")
    assert batch.num_single == 2
    assert [item.index for item in batch.rows] == [3, 1, 0, 2, 4]
    assert batch.token_ids.tolist() == [7, 4, 1, 2, 3, 5, 6, 8, 9]
    assert batch.positions.tolist() == [3, 9, 7, 8, 9, 0, 1, 0, 1]
    assert batch.write_slots.tolist() == [53, 27, 12, 13, 14, 30, 31, 60, 61]
    assert batch.logit_tokens.tolist() == [4, 1, 0, 7, 8]


def test_a_window_shortens_the_context_but_not_the_units():
    unit = slots(100, 20)
    [item] = place_rows([ForwardRow([1, 1], 0, slots(0, 30), (unit,), (1.0,))], "paper").rows
    unit_slots, context = item.segments(8)
    assert unit_slots.tolist() == unit.tolist()
    # The first of the two tokens is number 28: it sees 21 to 28.
    assert context.tolist() == list(range(21, 30))
    assert item.num_keys(8) == 29
    assert item.num_keys(None) == 50
    assert item.num_keys(1000) == 50


@pytest.mark.parametrize(
    "row",
    [
        ForwardRow([], 0, slots(0, 3)),
        ForwardRow([1, 2, 3], 0, slots(0, 2)),
        ForwardRow([1], 0, slots(0, 2), (slots(5, 1),), ()),
    ],
)
def test_rows_that_make_no_sense(row):
    with pytest.raises(ValueError, match="row 0"):
        place_rows([row], "paper")
