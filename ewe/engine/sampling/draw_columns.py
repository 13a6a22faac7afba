"""What `sample_tokens` is told of every row, as columns that are kept while the rows stay the same."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ewe.engine.sampling.philox import Uint64Array, first_uniforms
from ewe.engine.sampling.sampler import SamplingRow, uniform

# What `sample_tokens` asks for per row, in its order.
DRAWN_BY = {
    "temperatures": np.float32,
    "top_ks": np.int32,
    "top_ps": np.float32,
    "min_ps": np.float32,
    "points": np.float32,
}
_POSITION = 2  # in the counter of a row's random stream
_AHEAD = 8  # steps whose numbers are computed at once, which takes numpy little longer than one
_FEW = 4  # rows whose numbers are sooner computed one by one


class DrawColumns:
    """Knows the rows of the last step: of the same ones only the positions are asked for, and what depends on them.

    A row's number depends on its stream and its position alone, so what was computed ahead is what would be computed
    later. Row by row, from `_starts` on, `_numbers` [rows, _AHEAD] has those of the next positions.
    """

    def __init__(self) -> None:
        self._rows: list[SamplingRow] = []
        self._columns: dict[str, npt.NDArray[Any]] = {}
        self._output_ids: list[Sequence[int]] = []
        self._placeholders = np.empty(0, np.int64)
        self._is_drawn = np.empty(0, bool)
        self._starts, self._numbers = np.empty(0, np.int64), np.empty((0, _AHEAD))

    def of(self, rows: Sequence[SamplingRow]) -> dict[str, npt.NDArray[Any]]:
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
        self._columns = {name: np.array(column, DRAWN_BY[name]) for name, column in columns.items()}
        self._output_ids = [row.output_ids for row in rows]
        self._placeholders = np.array([row.num_placeholders for row in rows], np.int64)
        self._is_drawn = np.array([row.temperature > 0 for row in rows], bool)
        # Those that stay keep their numbers; the others have none at any position.
        before = {id(row): number for number, row in enumerate(self._rows)}
        kept = np.array([before.get(id(row), len(before)) for row in rows], np.int64)
        self._starts = np.append(self._starts, -_AHEAD)[kept]
        self._numbers = np.concatenate([self._numbers, np.zeros((1, _AHEAD))])[kept]
        self._rows = rows

    def _points(self) -> npt.NDArray[np.float64]:
        """`sampler.uniform` of every row that draws, 0 for the others."""
        positions = np.fromiter(map(len, self._output_ids), np.int64, len(self._rows)) + self._placeholders
        steps = positions - self._starts
        missing = np.flatnonzero(((steps < 0) | (steps >= _AHEAD)) & self._is_drawn)
        if len(missing) > _FEW:
            self._starts, missing = positions, missing[:0]
            steps = np.zeros_like(positions)
            self._numbers = _ahead(*map(_table, zip(*(row.random_stream for row in self._rows), strict=True)))
        points: npt.NDArray[np.float64] = self._numbers[np.arange(len(positions)), steps.clip(0, _AHEAD - 1)]
        points = np.where(self._is_drawn, points, 0.0)
        for number in missing.tolist():
            points[number] = uniform(self._rows[number])
        return points


def _ahead(keys: Uint64Array, counters: Uint64Array) -> npt.NDArray[np.float64]:
    """The numbers of streams at their positions and those that follow [rows, _AHEAD]."""
    later = np.repeat(counters, _AHEAD, axis=0)
    later[:, _POSITION] += np.tile(np.arange(_AHEAD, dtype=np.uint64), len(keys))
    return first_uniforms(np.repeat(keys, _AHEAD, axis=0), later).reshape(-1, _AHEAD)


def _table(lines: Sequence[Sequence[int]]) -> Uint64Array:
    return np.fromiter(chain.from_iterable(lines), np.uint64).reshape(len(lines), -1)
