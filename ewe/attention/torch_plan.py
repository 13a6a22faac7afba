"""One step's index and bias tensors for the torch backend.

Owns: which slots are gathered together, how they are padded, and every additive mask. Knows the flat batch; computes no
attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ewe.attention.metadata import FlatBatch, PlacedRow

# Slot 0 lies in the pool's null block: always zero, so that padding can never bring in a NaN.
_PADDING_SLOT = 0


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The most slots of padding that a decode group may have, and the most slots in all (of several rows)."""

    padding: int
    slots: int


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Rows of one token each, at flat tokens begin..end, gathered together and padded to the longest of them.

    slots: int64 [rows * keys]; bias: float32 [rows, 1, 1, keys], or None if no logit is biased and nothing padded.
    indices: int64 [rows], the caller's order. segments: int64 [rows, 1, 1, keys], each key's segment (-1: padding), and
    num_segments the most that a row has; only for attribution.
    """

    begin: int
    end: int
    slots: torch.Tensor
    bias: torch.Tensor | None
    indices: torch.Tensor
    segments: torch.Tensor | None
    num_segments: int


@dataclass(frozen=True, slots=True)
class PrefillRow:
    """One row of several tokens, at flat tokens begin..end.

    slots: int64 [keys], or None where the row sees its own new keys only, and the pool holds them as they are; bias:
    float32 [tokens, keys], or None for plain causal attention. segments: int64 [keys], each key's segment, only for
    attribution of a row with units.
    """

    begin: int
    end: int
    slots: torch.Tensor | None
    bias: torch.Tensor | None
    index: int
    segments: torch.Tensor | None
    num_segments: int


@dataclass(frozen=True, slots=True)
class TorchPlan:
    """One step's work for layers with one sliding window."""

    decodes: list[DecodeGroup]
    prefills: list[PrefillRow]


def make_plan(
    batch: FlatBatch,
    window: int | None,
    attribution: bool,
    device: torch.device,
    limits: GroupLimits | None,
    scaled: bool = False,
) -> TorchPlan:
    """The plan of one step; without limits all rows of one token make one group. scaled: whether the pool is in fp8."""
    singles, longer = batch.rows[: batch.num_single], batch.rows[batch.num_single :]
    decodes = [_decode_group(rows, window, attribution, device) for rows in _split(singles, window, limits)]
    return TorchPlan(decodes, [_prefill_row(item, window, attribution, device, scaled) for item in longer])


def _split(rows: Sequence[PlacedRow], window: int | None, limits: GroupLimits | None) -> list[Sequence[PlacedRow]]:
    """Neighbouring rows in groups within the limits."""
    if limits is None or len(rows) < 2:
        return [rows] if rows else []
    lengths = [item.num_keys(window) for item in rows]
    groups: list[Sequence[PlacedRow]] = []
    begin, longest, total = 0, 0, 0
    for index, length in enumerate(lengths):
        longest, total = max(longest, length), total + length
        padded = longest * (index + 1 - begin)
        if index > begin and (padded - total > limits.padding or padded > limits.slots):
            groups.append(rows[begin:index])
            begin, longest, total = index, length, length
    return [*groups, rows[begin:]]


def _decode_group(
    rows: Sequence[PlacedRow], window: int | None, attribution: bool, device: torch.device
) -> DecodeGroup:
    shape = (len(rows), max(item.num_keys(window) for item in rows))
    slots = np.full(shape, _PADDING_SLOT, np.int64)
    bias = np.full(shape, -np.inf, np.float32)
    segments = np.full(shape, -1, np.int64) if attribution else None
    for number, item in enumerate(rows):
        begin = 0
        biases = [*item.unit_biases, item.context_bias]
        for segment, (part, part_bias) in enumerate(zip(item.segments(window), biases, strict=True)):
            end = begin + len(part)
            slots[number, begin:end] = part
            bias[number, begin:end] = part_bias
            if segments is not None:
                segments[number, begin:end] = segment
            begin = end
    return DecodeGroup(
        begin=rows[0].begin,
        end=rows[-1].end,
        slots=torch.from_numpy(slots.ravel()).to(device),
        bias=torch.from_numpy(bias[:, None, None]).to(device) if bias.any() else None,
        indices=torch.tensor([item.index for item in rows], device=device),
        segments=None if segments is None else torch.from_numpy(segments[:, None, None]).to(device),
        num_segments=max(len(item.unit_biases) for item in rows) + 1,
    )


def _prefill_row(
    item: PlacedRow, window: int | None, attribution: bool, device: torch.device, scaled: bool
) -> PrefillRow:
    num_units = len(item.unit_biases)
    fresh = num_units == 0 and len(item.row.context_slots) == item.num_new
    parts = item.segments(window)
    plain = fresh and (window is None or item.num_new <= window)
    segments = None
    if attribution and num_units:
        segments = torch.from_numpy(np.repeat(np.arange(num_units + 1), list(map(len, parts)))).to(device)
    return PrefillRow(
        begin=item.begin,
        end=item.end,
        slots=None if fresh and not scaled else torch.from_numpy(np.concatenate(parts)).to(device),
        bias=None if plain else _prefill_bias(item, [len(part) for part in parts], window, device),
        index=item.index,
        segments=segments,
        num_segments=num_units + 1,
    )


def _prefill_bias(item: PlacedRow, lengths: list[int], window: int | None, device: torch.device) -> torch.Tensor:
    """[tokens, keys]: units visible to all tokens, the context causally and within the window."""
    *units, context = lengths
    behind = torch.arange(item.num_new, device=device)[:, None] + (context - item.num_new)
    behind = behind - torch.arange(context, device=device)
    hidden = behind < 0 if window is None else (behind < 0) | (behind >= window)
    context_bias = torch.full(behind.shape, item.context_bias, device=device).masked_fill_(hidden, -torch.inf)
    unit_bias = torch.from_numpy(np.repeat(np.asarray(item.unit_biases, np.float32), units)).to(device)
    return torch.cat([unit_bias.expand(item.num_new, -1), context_bias], dim=1)
