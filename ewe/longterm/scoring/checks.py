"""What the numbers of the formulas must be."""

from __future__ import annotations

import math

import numpy as np

from ewe.errors import ConfigError, InvalidRequestError

NEARLY = 1e-9
"""How far weights may be from summing to 1."""


def check_shares(**numbers: float) -> None:
    """Raises InvalidRequestError naming the first number that does not lie in [0, 1]."""
    for name, number in numbers.items():
        if not 0.0 <= number <= 1.0:
            raise InvalidRequestError(f"{name} must lie in [0, 1], got {number!r}")


def check_counts(**numbers: int) -> None:
    """Raises InvalidRequestError naming the first number that is no whole number of 0 or more."""
    for name, number in numbers.items():
        if type(number) is not int or number < 0:
            raise InvalidRequestError(f"{name} must be a whole number of 0 or more, got {number!r}")


def check_settings(**numbers: float) -> None:
    """Raises ConfigError naming every setting that does not lie in [0, 1]."""
    problems = [f"{name} must lie in [0, 1], got {value!r}" for name, value in numbers.items() if not 0 <= value <= 1]
    if problems:
        raise ConfigError(*problems)


def check_weights(sum_tolerance: float = NEARLY, **weights: float) -> None:
    """Raises ConfigError for weights outside [0, 1] or that do not sum to 1 within `sum_tolerance`."""
    check_settings(**weights)
    if abs(sum(weights.values()) - 1.0) > sum_tolerance + NEARLY:
        raise ConfigError(f"{', '.join(weights)} must sum to 1, got {sum(weights.values()):g}")


def check_positive(**numbers: float) -> None:
    """Raises ConfigError naming the first setting that is not finite and above 0."""
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise ConfigError(f"{name} must be above 0, got {number!r}")


def clipped(number: float) -> float:
    """The number cut to [0, 1]."""
    return float(np.clip(number, 0.0, 1.0))
