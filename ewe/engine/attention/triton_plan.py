"""One step's index and bias tensors for the Triton backend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ewe.engine.attention.block_lists import BlockLists, Tables
from ewe.engine.attention.decode_arrays import DecodeArrays, decode_arrays
from ewe.engine.attention.metadata import FlatBatch, PlacedRow
from ewe.engine.attention.packed import to_device


@dataclass(frozen=True, slots=True)
class DecodePlan:
    """The rows of one token, which are flat tokens 0 .. num_rows.

    Tensors and most_sharing as in DecodeArrays; num_alone and num_shared: int32 [1]. owners: int64 [states] each, as in
    DecodeArrays, only for attribution.
    """

    num_rows: int
    num_states: int
    alone: torch.Tensor
    num_alone: torch.Tensor
    shared: torch.Tensor
    num_shared: torch.Tensor
    most_sharing: int
    entries: torch.Tensor
    biases: torch.Tensor
    begins: torch.Tensor
    owners: tuple[torch.Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class PrefillPlan:
    """The rows of several tokens: runs [n, 4], segments [m, 2], biases [m] as `attend_runs` takes them."""

    rows: Sequence[PlacedRow]
    runs: torch.Tensor
    segments: torch.Tensor
    biases: torch.Tensor
    window: int | None


@dataclass(frozen=True, slots=True)
class TritonPlan:
    """One step's work for layers with one sliding window; tables: the blocks of all segments."""

    tables: torch.Tensor
    decode: DecodePlan | None
    prefill: PrefillPlan | None


# Of the rows of one token, if there are any; and all arrays by name, with the blocks of all segments as "tables".
Arranged = tuple[DecodeArrays | None, Mapping[str, np.ndarray]]


def arrange(
    batch: FlatBatch, window: int | None, lists: BlockLists, target_pieces: int, most_states: int | None = None
) -> Arranged:
    """The plan of one step on the host; target_pieces, most_states: see `decode_arrays`."""
    tables = Tables(lists)
    arrays: dict[str, np.ndarray] = {}
    singles, longer = batch.rows[: batch.num_single], batch.rows[batch.num_single :]
    decode = decode_arrays(singles, tables, window, target_pieces, most_states) if singles else None
    if decode is not None:
        arrays |= {name: getattr(decode, name) for name in ("alone", "shared", "counts", "entries", "biases", "begins")}
    if longer:
        arrays |= _prefill_arrays(tables, longer)
    return decode, arrays | {"tables": tables.blocks()}


def make_plan(
    arranged: Arranged, batch: FlatBatch, window: int | None, attribution: bool, device: torch.device
) -> TritonPlan:
    """The plan of one step on the device."""
    decode, arrays = arranged
    singles, longer = batch.rows[: batch.num_single], batch.rows[batch.num_single :]
    owners = {"owners": decode.owners} if decode is not None and attribution else {}
    tensors = to_device({**arrays, **owners}, device)
    return TritonPlan(
        tables=tensors["tables"],
        decode=decode_plan(tensors, len(singles), decode.num_states, decode.most_sharing)
        if decode is not None
        else None,
        prefill=prefill_plan(tensors, longer, window) if longer else None,
    )


def decode_plan(tensors: Mapping[str, torch.Tensor], num_rows: int, num_states: int, most_sharing: int) -> DecodePlan:
    """The plan over tensors that are named as the arrays are."""
    return DecodePlan(
        num_rows=num_rows,
        num_states=num_states,
        alone=tensors["alone"],
        num_alone=tensors["counts"][:1],
        shared=tensors["shared"],
        num_shared=tensors["counts"][1:],
        most_sharing=most_sharing,
        entries=tensors["entries"],
        biases=tensors["biases"],
        begins=tensors["begins"],
        owners=tensors["owners"].long().unbind(1) if "owners" in tensors else (),
    )


def _prefill_arrays(tables: Tables, rows: Sequence[PlacedRow]) -> dict[str, np.ndarray]:
    runs: list[tuple[int, int, int, int]] = []
    segments: list[tuple[int, int]] = []
    biases: list[float] = []
    for item in rows:
        runs.append((item.begin, item.num_new, len(segments), len(item.memory_biases)))
        segments += [(tables.add_unit(tables.lists.unit(slots)), len(slots)) for slots in item.row.memory_slots]
        segments.append((tables.add_context(item.row.context_slots), len(item.row.context_slots)))
        biases += [*item.memory_biases, item.context_bias]
    return {
        "runs": np.array(runs, np.int32),
        "segments": np.array(segments, np.int32),
        "segment_biases": np.array(biases, np.float32),
    }


def prefill_plan(tensors: Mapping[str, torch.Tensor], rows: Sequence[PlacedRow], window: int | None) -> PrefillPlan:
    """The plan over tensors that are named as the arrays are."""
    return PrefillPlan(rows, tensors["runs"], tensors["segments"], tensors["segment_biases"], window)
