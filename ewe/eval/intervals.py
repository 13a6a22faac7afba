"""Shares and means with their 95% intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

DRAWS = 10_000
_Z = 1.96
_AT_ONCE = 2_000_000  # numbers drawn at a time: 16 MB


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of_share(cls, count: int, total: int) -> Interval:
        """`count` of `total` (at least 1), after Wilson (1927)."""
        value, spread = count / total, _Z**2 / total
        centre = (value + spread / 2) / (1 + spread)
        half = math.sqrt(spread * (value * (1 - value) + spread / 4)) / (1 + spread)
        return cls(value, max(0.0, centre - half), min(1.0, centre + half))

    @classmethod
    def of_mean(cls, values: Sequence[float]) -> Interval:
        """The mean of at least one value, by 10,000 draws with replacement; the same at every call."""
        sample, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(0)
        rows = max(1, _AT_ONCE // len(sample))
        sizes = [min(rows, DRAWS - first) for first in range(0, DRAWS, rows)]
        means = np.concatenate([sample[rng.integers(0, len(sample), (size, len(sample)))].mean(1) for size in sizes])
        low, high = np.quantile(means, (0.025, 0.975))
        return cls(float(sample.mean()), float(low), float(high))

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"
