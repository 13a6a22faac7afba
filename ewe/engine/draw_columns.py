"""What `sample_tokens` is told of every row, as columns that are kept while the rows stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ewe.engine.philox import Uint64Array, Uniforms

if TYPE_CHECKING:
    from ewe.engine.sampler import SamplingRow

# What `sample_tokens` asks for per row, in its order.
DRAWN_BY = {
    "temperatures": np.float32,
    "top_ks": np.int32,
    "top_ps": np.float32,
    "min_ps": np.float32,
    "points": np.float32,
}
_POSITION = 2  # in the counter of a row's random stream


class DrawColumns:
    """Knows the rows of the last step: of the same ones only the positions are asked for, and what depends on them."""

    def __init__(self) -> None:
        self._rows: list[SamplingRow] = []
        self._columns: dict[str, np.ndarray] = {}
        self._drawn: list[int] = []
        self._keys, self._counters = np.empty((0, 2), np.uint64), np.empty((0, 4), np.uint64)
        self._uniforms = Uniforms()

    def of(self, rows: Sequence[SamplingRow]) -> dict[str, np.ndarray]:
        """Per row what `sample_tokens` asks for, by name; it is not to be written to."""
        listed = list(rows)
        if listed != self._rows:
            self._learn(listed)
        return self._columns | {"points": self._points().astype(np.float32)}

    def _learn(self, rows: list[SamplingRow]) -> None:
        params = [row.params for row in rows]
        columns: dict[str, Any] = {
            "temperatures": [row.temperature for row in rows],
            "top_ks": np.maximum([item.top_k for item in params], 0),
            "top_ps": [item.top_p for item in params],
            "min_ps": [item.min_p for item in params],
        }
        self._rows = rows
        self._columns = {name: np.array(column, DRAWN_BY[name]) for name, column in columns.items()}
        self._drawn = [number for number, row in enumerate(rows) if row.temperature]
        streams = [rows[number].random_stream for number in self._drawn]
        self._keys = _table([key for key, _ in streams], 2)
        self._counters = _table([counter for _, counter in streams], 4)

    def _points(self) -> np.ndarray:
        """`sampler.uniform` of every row that draws, 0 for the others."""
        points = np.zeros(len(self._rows))
        if self._drawn:
            counters = self._counters.copy()
            counters[:, _POSITION] = [self._rows[number].position for number in self._drawn]
            points[self._drawn] = self._uniforms.of(self._keys, counters)
        return points


def _table(lines: Sequence[Sequence[int]], width: int) -> Uint64Array:
    return np.fromiter(chain.from_iterable(lines), np.uint64).reshape(len(lines), width)
