"""The plan of a step over tensors of fixed sizes in fixed places, as captured graphs need it.

How many pieces there are is a number on the device, a row without states gets zeros, and so do tokens that pad a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch

from ewe.engine.attention.packed import Shape
from ewe.engine.attention.triton_plan import Arranged, TritonPlan, decode_plan, prefill_plan

# States per segment on average, beside those that long contexts are cut into to keep the device busy.
_STATES_PER_SEGMENT = 2
# Tokens per run on average: units are longer, and so are chunks of prompts.
_TOKENS_PER_RUN = 8


@dataclass(frozen=True, slots=True)
class PlanSizes:
    """How much a plan holds: rows of one token (lanes), their states, and so pieces of each kind; blocks in tables.

    tokens: of all rows; runs, segments: rows of several tokens with what they see, one of each for the padding; none in
    a step that only decodes.
    """

    rows: int
    states: int
    tables: int
    tokens: int
    runs: int = 0
    segments: int = 0

    @classmethod
    def of(cls, rows: int, units: int, target_pieces: int, num_blocks: int, longer: int = 0) -> PlanSizes:
        """The sizes for so many rows of up to `units` units each; pieces of longer contexts grow until they fit.

        target_pieces: see `decode_arrays`; num_blocks: of the pool, which rows may hold in common. longer: tokens of
        rows of several tokens.
        """
        states = _STATES_PER_SEGMENT * (rows * (units + 1) + target_pieces)
        runs = longer // _TOKENS_PER_RUN
        return cls(rows, states, 2 * num_blocks, rows + longer, runs, runs * (units + 2))  # a prefix, units, a context

    def hold(self, arranged: Arranged) -> bool:
        """Whether these arrays have room."""
        decode, arrays = arranged
        room = _room(self)
        # A plan of one row has no place for pieces that are shared: only a memory with a unit twice would have them.
        shared = decode is None or len(decode.shared) == 0 or decode.most_sharing <= self.rows > 1
        return shared and all(len(array) <= room[name] for name, array in arrays.items())

    def layout(self) -> dict[str, tuple[Shape, npt.DTypeLike]]:
        """Shape and dtype of every array; tables come last, because most of them is never used."""
        return {
            "counts": ((2,), np.int32),
            "alone": ((self.states, 5), np.int32),
            "shared": ((self.states if self.rows > 1 else 0, 5), np.int32),
            "entries": ((self.states, 2), np.int32),
            "biases": ((self.states,), np.float32),
            "begins": ((self.rows + 1,), np.int32),
            "runs": ((self.runs, 4), np.int32),
            "segments": ((self.segments, 2), np.int32),
            "segment_biases": ((self.segments,), np.float32),
            "tables": ((self.tables,), np.int32),
        }

    def plan(self, tensors: Mapping[str, torch.Tensor], window: int | None) -> TritonPlan:
        """The plan over tensors of this layout, for layers with this sliding window.

        All rows but the real ones get zeros from the merge; the tokens that are there instead get theirs afterwards.
        """
        decode = decode_plan(tensors, self.rows, self.states, self.rows)
        return TritonPlan(tensors["tables"], decode, prefill_plan(tensors, (), window) if self.runs else None)

    def fill(self, host: Mapping[str, npt.NDArray[np.generic]], arranged: Arranged, num_tokens: int) -> None:
        """Writes a step of so many tokens into buffers of this layout; nobody reads what is left over."""
        decode, arrays = arranged
        host["counts"][:] = 0
        host["begins"][:] = 0 if decode is None else decode.num_states
        for name, array in arrays.items():
            host[name][: len(array)] = array
        if self.runs:
            runs, segments = len(arrays.get("runs", ())), len(arrays.get("segments", ()))
            # What pads the step is one more run, over an empty context; the runs that are left are empty.
            host["segments"][segments] = 0
            host["runs"][runs:] = self.tokens, 0, segments, 0
            host["runs"][runs, :2] = num_tokens, self.tokens - num_tokens


@cache
def _room(sizes: PlanSizes) -> dict[str, int]:
    """How long each array may be: one run and one segment are for what pads a step."""
    return {name: shape[0] - (name in ("runs", "segments")) for name, (shape, _) in sizes.layout().items()}
