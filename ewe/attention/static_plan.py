"""The plan of a decoding step over tensors of fixed sizes in fixed places, as captured graphs need it.

How many pieces there are is a number on the device, and a row without states gets zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from ewe.attention.decode_arrays import DecodeArrays, Int32Array
from ewe.attention.packed import Shape
from ewe.attention.triton_plan import DecodePlan, TritonPlan

# States per segment on average, beside those that long contexts are cut into to keep the device busy.
_STATES_PER_SEGMENT = 2


@dataclass(frozen=True, slots=True)
class PlanSizes:
    """How much a plan holds: rows (lanes), states, and so pieces of each kind, and blocks in tables."""

    rows: int
    states: int
    tables: int

    @classmethod
    def of(cls, rows: int, units: int, wanted_pieces: int, num_blocks: int) -> PlanSizes:
        """The sizes for so many rows of up to `units` units each; pieces of longer contexts grow until they fit.

        wanted_pieces: see `decode_arrays`; num_blocks: of the pool, which rows may hold in common.
        """
        return cls(rows, _STATES_PER_SEGMENT * (rows * (units + 1) + wanted_pieces), 2 * num_blocks)

    def hold(self, arrays: DecodeArrays, num_blocks: int) -> bool:
        """Whether these arrays, with so many blocks in their tables, have room."""
        # A plan of one row has no place for pieces that are shared: only a memory with a unit twice would have them.
        shared = len(arrays.shared) == 0 or arrays.most_sharing <= self.rows > 1
        return shared and arrays.num_states <= self.states and num_blocks <= self.tables

    def layout(self) -> dict[str, tuple[Shape, npt.DTypeLike]]:
        """Shape and dtype of every array; tables come last, because most of them is never used."""
        return {
            "counts": ((2,), np.int32),
            "alone": ((self.states, 5), np.int32),
            "shared": ((self.states if self.rows > 1 else 0, 5), np.int32),
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
            num_alone=tensors["counts"][:1],
            shared=tensors["shared"],
            num_shared=tensors["counts"][1:],
            most_sharing=self.rows,
            entries=tensors["entries"],
            biases=tensors["biases"],
            begins=tensors["begins"],
        )
        return TritonPlan(tensors["tables"], decode, None)


def fill_plan(host: Mapping[str, npt.NDArray[np.generic]], arrays: DecodeArrays, tables: Int32Array) -> None:
    """Writes a step's arrays into buffers of a layout that holds them; nobody reads what is left over."""
    for name in ("counts", "alone", "shared", "entries", "biases", "begins"):
        array = getattr(arrays, name)
        host[name][: len(array)] = array
    host["begins"][len(arrays.begins) :] = arrays.num_states
    host["tables"][: len(tables)] = tables
