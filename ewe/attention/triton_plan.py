"""One step's index and bias tensors for the Triton backend.

Owns: cutting segments into pieces, finding units that rows share, and packing it all for one copy to the device. Knows
the flat batch; computes no attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from ewe.attention.metadata import FlatBatch, IntArray, PlacedRow

# Pieces shorter than this cost more in states written and merged than they win in parallel work,
_LEAST_PIECE = 128
# and beyond this length the states are 1% of the traffic, while the last wave of programs grows uneven.
_MOST_PIECE = 512


@dataclass(frozen=True, slots=True)
class DecodePlan:
    """The rows of one token, which are flat tokens 0 .. num_rows.

    alone, shared: pieces [n, 5] with one entry and with several (at most most_sharing); entries [states, 2]; biases
    [states] and begins [num_rows + 1], all as `attend_pieces` and `merge_states` take them; the states of a row are
    neighbours. indices, segments: int64 [states], each state's row in the caller's order, and segment; for attribution.
    """

    num_rows: int
    num_states: int
    alone: torch.Tensor
    shared: torch.Tensor
    most_sharing: int
    entries: torch.Tensor
    biases: torch.Tensor
    begins: torch.Tensor
    state_rows: torch.Tensor
    indices: torch.Tensor
    segments: torch.Tensor


@dataclass(frozen=True, slots=True)
class PrefillPlan:
    """The rows of several tokens: runs [n, 4], segments [m, 2], biases [m], longest as `attend_runs` takes them."""

    rows: Sequence[PlacedRow]
    runs: torch.Tensor
    segments: torch.Tensor
    biases: torch.Tensor
    longest: int
    window: int | None


@dataclass(frozen=True, slots=True)
class TritonPlan:
    """One step's work for layers with one sliding window; tables: the blocks of all segments."""

    tables: torch.Tensor
    decode: DecodePlan | None
    prefill: PrefillPlan | None


def make_plan(
    batch: FlatBatch, window: int | None, device: torch.device, block_size: int, wanted_pieces: int
) -> TritonPlan:
    """The plan of one step; wanted_pieces: how many pieces of keys keep the device busy."""
    tables = _Tables(block_size)
    arrays: dict[str, np.ndarray] = {}
    singles, longer = batch.rows[: batch.num_single], batch.rows[batch.num_single :]
    decode = _Decode(tables, singles, window, wanted_pieces) if singles else None
    if decode is not None:
        arrays |= decode.arrays()
    if longer:
        arrays |= _prefill_arrays(tables, longer)
    arrays["tables"] = np.concatenate(tables.blocks).astype(np.int32)
    tensors = _to_device(arrays, device)
    return TritonPlan(
        tables=tensors["tables"],
        decode=decode.plan(tensors) if decode is not None else None,
        prefill=_prefill_plan(tensors, longer, window) if longer else None,
    )


class _Tables:
    """The lists of blocks of all segments in a row; the same list is kept once."""

    def __init__(self, block_size: int) -> None:
        self.blocks: list[IntArray] = []
        self._block_size = block_size
        self._begins: dict[bytes, int] = {}
        self._length = 0

    def add(self, slots: IntArray) -> int:
        """Where the segment's list begins. Its tokens fill blocks from the first slot of one on."""
        blocks = slots[:: self._block_size] // self._block_size
        key = blocks.tobytes()
        begin = self._begins.setdefault(key, self._length)
        if begin == self._length:
            self.blocks.append(blocks)
            self._length += len(blocks)
        return begin


@dataclass(slots=True)
class _Segment:
    """Keys begin .. end of one list of blocks, and who sees them: (token, first state) per row."""

    table: int
    begin: int
    end: int
    readers: list[tuple[int, int]] = field(default_factory=list)


class _Decode:
    """Collects segments and their readers, then cuts them into pieces."""

    def __init__(self, tables: _Tables, rows: Sequence[PlacedRow], window: int | None, wanted: int) -> None:
        self._rows = rows
        self._segments: dict[tuple[int, int, int], _Segment] = {}
        seen = [self._row_segments(tables, item, window) for item in rows]
        keys = sum(segment.end - segment.begin for segment in self._segments.values())
        # Whole tiles of 64 keys.
        self._piece = min(max(-(-keys // (wanted * 64)) * 64, _LEAST_PIECE), _MOST_PIECE)
        self._biases: list[float] = []
        self._begins = [0]
        self._owners: list[tuple[int, int, int]] = []
        for number, (item, segments) in enumerate(zip(rows, seen, strict=True)):
            self._place_states(number, item, segments)

    def _row_segments(self, tables: _Tables, item: PlacedRow, window: int | None) -> list[_Segment | None]:
        """The row's units, then its context; None for an empty unit."""
        context = item.row.context_slots
        begin = 0 if window is None else max(0, len(context) - window)
        parts = [(slots, 0) for slots in item.row.unit_slots] + [(context, begin)]
        return [self._segment(tables.add(slots), first, len(slots)) if len(slots) else None for slots, first in parts]

    def _segment(self, table: int, begin: int, end: int) -> _Segment:
        return self._segments.setdefault((table, begin, end), _Segment(table, begin, end))

    def _place_states(self, number: int, item: PlacedRow, segments: Sequence[_Segment | None]) -> None:
        biases = [*item.unit_biases, item.context_bias]
        for index, (segment, bias) in enumerate(zip(segments, biases, strict=True)):
            if segment is None:
                continue
            segment.readers.append((item.begin, len(self._biases)))
            count = -(-(segment.end - segment.begin) // self._piece)
            self._biases += [bias] * count
            self._owners += [(number, item.index, index)] * count
        self._begins.append(len(self._biases))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that the kernels read, as int32 and float32."""
        pieces: dict[bool, list[tuple[int, int, int, int, int]]] = {False: [], True: []}
        entries: list[tuple[int, int]] = []
        for segment in self._segments.values():
            several = len(segment.readers) > 1
            for number, begin in enumerate(range(segment.begin, segment.end, self._piece)):
                end = min(begin + self._piece, segment.end)
                pieces[several].append((segment.table, begin, end, len(entries), len(segment.readers)))
                entries += [(token, state + number) for token, state in segment.readers]
        return {
            "alone": np.array(pieces[False], np.int32).reshape(-1, 5),
            "shared": np.array(pieces[True], np.int32).reshape(-1, 5),
            "entries": np.array(entries, np.int32),
            "state_biases": np.array(self._biases, np.float32),
            "begins": np.array(self._begins, np.int32),
            "owners": np.array(self._owners, np.int32),
        }

    def plan(self, tensors: dict[str, torch.Tensor]) -> DecodePlan:
        """The plan over what `arrays` gave, on the device by now."""
        state_rows, indices, segments = tensors["owners"].long().unbind(1)
        return DecodePlan(
            num_rows=len(self._rows),
            num_states=len(self._biases),
            alone=tensors["alone"],
            shared=tensors["shared"],
            most_sharing=max(len(segment.readers) for segment in self._segments.values()),
            entries=tensors["entries"],
            biases=tensors["state_biases"],
            begins=tensors["begins"],
            state_rows=state_rows,
            indices=indices,
            segments=segments,
        )


def _prefill_arrays(tables: _Tables, rows: Sequence[PlacedRow]) -> dict[str, np.ndarray]:
    runs: list[tuple[int, int, int, int]] = []
    segments: list[tuple[int, int]] = []
    biases: list[float] = []
    for item in rows:
        runs.append((item.begin, item.num_new, len(segments), len(item.unit_biases)))
        segments += [(tables.add(slots), len(slots)) for slots in (*item.row.unit_slots, item.row.context_slots)]
        biases += [*item.unit_biases, item.context_bias]
    return {
        "runs": np.array(runs, np.int32),
        "segments": np.array(segments, np.int32),
        "segment_biases": np.array(biases, np.float32),
    }


def _prefill_plan(tensors: dict[str, torch.Tensor], rows: Sequence[PlacedRow], window: int | None) -> PrefillPlan:
    return PrefillPlan(
        rows=rows,
        runs=tensors["runs"],
        segments=tensors["segments"],
        biases=tensors["segment_biases"],
        longest=max(item.num_new for item in rows),
        window=window,
    )


def _to_device(arrays: dict[str, np.ndarray], device: torch.device) -> dict[str, torch.Tensor]:
    """All arrays in one copy; each begins at a multiple of 16 bytes, or Triton would compile for each alignment."""
    sizes = [-(-array.size // 4) * 4 for array in arrays.values()]
    packed = torch.empty(sum(sizes), dtype=torch.int32, pin_memory=device.type == "cuda")
    host = packed.numpy()
    begins = np.cumsum([0, *sizes[:-1]]).tolist()
    for begin, array in zip(begins, arrays.values(), strict=True):
        host[begin : begin + array.size] = array.ravel().view(np.int32)
    moved = packed.to(device, non_blocking=True)
    tensors: dict[str, torch.Tensor] = {}
    for begin, (name, array) in zip(begins, arrays.items(), strict=True):
        part = moved[begin : begin + array.size]
        tensors[name] = (part.view(torch.float32) if array.dtype == np.float32 else part).view(array.shape)
    return tensors
