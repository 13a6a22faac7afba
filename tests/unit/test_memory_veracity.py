"""Veracity as a unit's weight."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ewe.engine.units.unit_text import unit_weight


@pytest.mark.parametrize(("mode", "expected"), [("off", 1.0), ("linear", 0.5), ("power", 0.125)])
def test_the_three_modes(mode: Any, expected: float) -> None:
    assert unit_weight(0.5, mode, 3.0) == expected
    assert unit_weight(1.0, mode, 3.0) == 1.0


@pytest.mark.parametrize("mode", ["off", "linear", "power"])
def test_veracity_0_stays_out_in_every_mode(mode: Any) -> None:
    assert unit_weight(0.0, mode, 2.0) is None


def test_a_weight_too_small_for_a_float_stays_out() -> None:
    assert unit_weight(1e-200, "power", 2.0) is None


@pytest.mark.parametrize("veracity", [-0.1, 1.1, math.nan])
def test_refuses_what_is_no_veracity(veracity: float) -> None:
    with pytest.raises(ValueError, match="veracity"):
        unit_weight(veracity, "linear", 1.0)


@given(
    veracity=st.floats(0, 1), mode=st.sampled_from(["off", "linear", "power"]), power=st.floats(0, 50, exclude_min=True)
)
def test_every_weight_has_a_finite_logarithm(veracity: float, mode: Any, power: float) -> None:
    weight = unit_weight(veracity, mode, power)
    assert weight is None or (0 < weight <= 1 and math.isfinite(math.log(weight)))
