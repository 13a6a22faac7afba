"""One step's index and bias tensors for the torch backend."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from ewe.engine.attention.metadata import FlatBatch, PlacedRow

# Slot 0 lies in the pool's null block: always zero, so that padding can never bring in a NaN.
_PADDING_SLOT = 0
# Of the slots that a group's rows need: how many more may be padding, and how many sharing has to spare.
_MOST_PADDING, _LEAST_SPARED = 0.5, 0.25


@dataclass(frozen=True, slots=True)
class SharedUnits:
    """The units of all rows of a group. slots: int64 [keys]; bias: float32 [rows, 1, keys], or None if all are zero."""

    slots: torch.Tensor
    bias: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Rows of one token each, at tokens begin..end, gathered together and padded to the longest of them.

    units: what the rows share, if they do; what follows is then about their contexts alone. slots: int64 [rows * keys];
    bias: float32 [rows, 1, 1, keys], or None if no logit is biased and nothing padded. indices: int64 [rows], the
    caller's order. segments: int64 [rows, 1, 1, keys], each key's segment (-1: padding), and num_segments the most that
    a row has; only for attribution.
    """

    begin: int
    end: int
    units: SharedUnits | None
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
    """One step's work for layers with one sliding window.

    order: int64 [T], the flat tokens in the order of the groups, and back: the place there of each flat token; None if
    they are in order.
    """

    decodes: list[DecodeGroup]
    prefills: list[PrefillRow]
    order: torch.Tensor | None = None
    back: torch.Tensor | None = None


def make_plan(
    batch: FlatBatch,
    window: int | None,
    attribution: bool,
    device: torch.device,
    most_slots: int | None,
    scaled: bool = False,
) -> TorchPlan:
    """The plan of one step. most_slots: of a decode group of several rows; None: all rows of one token make one group.

    scaled: whether the pool is in fp8.
    """
    singles, longer = batch.rows[: batch.num_single], batch.rows[batch.num_single :]
    groups = [_Group(singles, False)] if most_slots is None else _groups(singles, window, most_slots, not attribution)
    decodes: list[DecodeGroup] = []
    for group in groups:
        if group.rows:
            begin = decodes[-1].end if decodes else 0
            decodes.append(_decode_group(group, begin, window, attribution, device))
    prefills = [_prefill_row(item, window, attribution, device, scaled) for item in longer]
    return TorchPlan(decodes, prefills, *_orders(groups, batch, device))


class _Group(NamedTuple):
    """Rows of one token each; share: whether their units are gathered once for all of them."""

    rows: Sequence[PlacedRow]
    share: bool


def _groups(rows: Sequence[PlacedRow], window: int | None, most_slots: int, may_share: bool) -> list[_Group]:
    """All rows in groups: those that share their units, memory by memory, then the others in their order."""
    sharing, alone = _by_memory(rows, window) if may_share else ([], rows)
    groups: list[_Group] = []
    for members in sharing:
        num_shared = _num_shared(members)
        lengths = [row.num_keys(window) - num_shared for row in members]
        groups += [_Group(part, len(part) > 1) for part in _split(members, lengths, most_slots, num_shared)]
    return groups + [_Group(part, False) for part in _split(alone, [row.num_keys(window) for row in alone], most_slots)]


def _orders(
    groups: Sequence[_Group], batch: FlatBatch, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor] | tuple[None, None]:
    """The flat tokens in the order of the groups, and the way back; None if they are in order."""
    singles = [item.begin for group in groups for item in group.rows]
    if singles == sorted(singles):
        return None, None
    order = np.array([*singles, *range(batch.num_single, len(batch.token_ids))], np.int64)
    return torch.from_numpy(order).to(device), torch.from_numpy(np.argsort(order)).to(device)


def _by_memory(
    rows: Sequence[PlacedRow], window: int | None
) -> tuple[Sequence[Sequence[PlacedRow]], Sequence[PlacedRow]]:
    """The rows that share all their units, memory by memory, where that spares enough; and the rest, in their order."""
    memories: dict[tuple[int, ...], list[PlacedRow]] = {}
    for item in rows:
        # A unit's slots are the same array for whoever holds it.
        memories.setdefault(tuple(map(id, item.row.memory_slots)), []).append(item)
    sharing = [
        members
        for members in memories.values()
        if (len(members) - 1) * _num_shared(members) > _LEAST_SPARED * sum(item.num_keys(window) for item in members)
    ]
    taken = {item.index for members in sharing for item in members}
    return sharing, [item for item in rows if item.index not in taken]


def _num_shared(rows: Sequence[PlacedRow]) -> int:
    return sum(map(len, rows[0].row.memory_slots))


def _split(
    rows: Sequence[PlacedRow], lengths: Sequence[int], most_slots: int, num_shared: int = 0
) -> list[Sequence[PlacedRow]]:
    """Neighbouring rows, of these lengths, in groups; one more of them gathers num_shared slots once more."""
    groups: list[Sequence[PlacedRow]] = []
    begin, longest, total = 0, 0, 0
    for index, length in enumerate(lengths):
        longest, total = max(longest, length), total + length
        padded = longest * (index + 1 - begin)
        too_much = padded - total > _MOST_PADDING * total + num_shared or padded > most_slots + num_shared
        if index > begin and too_much:
            groups.append(rows[begin:index])
            begin, longest, total = index, length, length
    return [*groups, rows[begin:]]


def _decode_group(
    group: _Group, token: int, window: int | None, attribution: bool, device: torch.device
) -> DecodeGroup:
    """A group whose first row is the token `token`, in the order of the groups."""
    rows, share = group
    first = len(rows[0].row.memory_slots) if share else 0
    parts = [item.segments(window)[first:] for item in rows]
    shape = (len(rows), max(sum(map(len, segments)) for segments in parts))
    slots = np.full(shape, _PADDING_SLOT, np.int64)
    bias = np.full(shape, -np.inf, np.float32)
    segments = np.full(shape, -1, np.int64) if attribution else None
    for number, item in enumerate(rows):
        begin = 0
        biases = [*item.memory_biases, item.context_bias][first:]
        for segment, (part, part_bias) in enumerate(zip(parts[number], biases, strict=True)):
            end = begin + len(part)
            slots[number, begin:end] = part
            bias[number, begin:end] = part_bias
            if segments is not None:
                segments[number, begin:end] = segment
            begin = end
    return DecodeGroup(
        begin=token,
        end=token + len(rows),
        units=_shared_units(rows, device) if share else None,
        slots=torch.from_numpy(slots.ravel()).to(device),
        bias=torch.from_numpy(bias[:, None, None]).to(device) if bias.any() else None,
        indices=torch.tensor([item.index for item in rows], device=device),
        segments=None if segments is None else torch.from_numpy(segments[:, None, None]).to(device),
        num_segments=max(len(item.memory_biases) for item in rows) + 1,
    )


def _shared_units(rows: Sequence[PlacedRow], device: torch.device) -> SharedUnits:
    units = rows[0].row.memory_slots
    lengths = [len(slots) for slots in units]
    bias = np.stack([np.repeat(np.asarray(item.memory_biases, np.float32), lengths) for item in rows])
    return SharedUnits(
        slots=torch.from_numpy(np.concatenate(units)).to(device),
        bias=torch.from_numpy(bias[:, None]).to(device) if bias.any() else None,
    )


def _prefill_row(
    item: PlacedRow, window: int | None, attribution: bool, device: torch.device, scaled: bool
) -> PrefillRow:
    num_units = len(item.memory_biases)
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
    unit_bias = torch.from_numpy(np.repeat(np.asarray(item.memory_biases, np.float32), units)).to(device)
    return torch.cat([unit_bias.expand(item.num_new, -1), context_bias], dim=1)
