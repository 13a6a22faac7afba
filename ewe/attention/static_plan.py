"""The plan of a decoding step over tensors of fixed sizes in fixed places, as captured graphs need it.

Owns: the classes of sizes, and how a step's arrays fill buffers that are larger. Knows the arrays and the plan; copies
nothing and captures nothing. A piece without entries does nothing, and a row without states gets zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from ewe_kernels.tiles import next_power_of_two

from ewe.attention.decode_arrays import DecodeArrays, Int32Array
from ewe.attention.packed import Shape
from ewe.attention.triton_plan import DecodePlan, TritonPlan

# The least sizes, so that short contexts do not each get a class of their own.
_LEAST_PIECES, _LEAST_STATES, _LEAST_TABLES = 16, 64, 1024


@dataclass(frozen=True, slots=True)
class PlanSizes:
    """How much a plan holds: rows (lanes), pieces of one entry, pieces of several, states, blocks in tables.

    Numbers of pieces are launched as programs, so their classes are powers of two; the rest is memory only and grows by
    four.
    """

    rows: int
    alone: int
    shared: int
    states: int
    tables: int

    @classmethod
    def holding(cls, rows: int, arrays: DecodeArrays, num_blocks: int) -> PlanSizes:
        """The least class that holds these arrays for `rows` lanes."""
        return cls(
            rows=rows,
            alone=max(_LEAST_PIECES, next_power_of_two(len(arrays.alone))),
            shared=max(_LEAST_PIECES, next_power_of_two(len(arrays.shared))) if len(arrays.shared) else 0,
            states=_next_power_of_four(max(_LEAST_STATES, arrays.num_states)),
            tables=_next_power_of_four(max(_LEAST_TABLES, num_blocks)),
        )

    def layout(self) -> dict[str, tuple[Shape, npt.DTypeLike]]:
        """Shape and dtype of every array."""
        return {
            "alone": ((self.alone, 5), np.int32),
            "shared": ((self.shared, 5), np.int32),
            "entries": ((self.states, 2), np.int32),
            "biases": ((self.states,), np.float32),
            "begins": ((self.rows + 1,), np.int32),
            "tables": ((self.tables,), np.int32),
        }

    def plan(self, tensors: Mapping[str, torch.Tensor]) -> TritonPlan:
        """The plan over tensors of this layout."""
        decode = DecodePlan(
            num_rows=self.rows,
            num_states=self.states,
            alone=tensors["alone"],
            shared=tensors["shared"],
            most_sharing=self.rows,
            entries=tensors["entries"],
            biases=tensors["biases"],
            begins=tensors["begins"],
        )
        return TritonPlan(tensors["tables"], decode, None)


def fill_plan(host: Mapping[str, npt.NDArray[np.generic]], arrays: DecodeArrays, tables: Int32Array) -> None:
    """Writes a step's arrays into buffers of a layout that holds them; what is left over does nothing."""
    for name, array in (("alone", arrays.alone), ("shared", arrays.shared)):
        host[name][: len(array)] = array
        host[name][len(array) :] = 0
    host["entries"][: arrays.num_states] = arrays.entries
    host["biases"][: arrays.num_states] = arrays.biases
    host["begins"][: len(arrays.begins)] = arrays.begins
    host["begins"][len(arrays.begins) :] = arrays.num_states
    host["tables"][: len(tables)] = tables


def _next_power_of_four(number: int) -> int:
    return 1 << (next_power_of_two(number).bit_length() // 2 * 2)
