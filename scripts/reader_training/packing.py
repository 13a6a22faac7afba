"""Examples as rows of tokens: several examples in one row, each in a memory of its own.

A layout gives every token of an example a position and a segment: 0 for the prefix, i for unit i, the last for rest
and answer. `attention.py` makes the mask of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from reader_training.frames import Example

REST = 10_000
"""The segment of rest and answer, which see all others."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One example's token ids, positions and segments; the last `answer` ids are the target."""

    ids: list[int]
    positions: list[int]
    segments: list[int]
    answer: int


def parallel_layout(example: Example, unit_tokens: int) -> Layout:
    """Units side by side after the prefix; rest and answer at P + unit_tokens, or at P without memory."""
    start = len(example.prefix)
    tail = example.rest + example.target
    context = start + (unit_tokens if example.in_memory else 0)
    ids, positions, segments = list(example.prefix), list(range(start)), [0] * start
    for number, unit in enumerate(example.units, 1):
        ids += unit
        positions += range(start, start + len(unit))
        segments += [number] * len(unit)
    ids += tail
    positions += range(context, context + len(tail))
    segments += [REST] * len(tail)
    return Layout(ids, positions, segments, len(example.target))


def sequential_layout(example: Example, chosen: Sequence[int]) -> Layout:
    """The chosen units one after the other in an ordinary causal prompt."""
    inner = [token for number in chosen for token in example.units[number]]
    ids = [*example.prefix, *inner, *example.rest, *example.target]
    return Layout(ids, list(range(len(ids))), [REST] * len(ids), len(example.target))


@dataclass(frozen=True, slots=True)
class Packed:
    """A batch. ids, positions, segments, owners: [rows, width], owners -1 where nothing is; index [targets]: flat
    places whose output predicts a token of an answer; labels [targets]: those tokens, example by example.
    """

    ids: Tensor
    positions: Tensor
    segments: Tensor
    owners: Tensor
    index: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> Packed:
        """The same on `device`, int64 (on its way from a worker it is int32, half the size)."""
        return Packed(*(getattr(self, name).to(device).long() for name in self.__slots__))


@dataclass
class Rows:
    """Rows of `width` tokens that are filled with layouts, each in the first row that has room for it."""

    rows: int
    width: int
    room: list[int] = field(init=False)
    order: list[tuple[int, int, Layout]] = field(init=False)

    def __post_init__(self) -> None:
        self.room = [self.width] * self.rows
        self.order = []

    def row_for(self, layout: Layout) -> int | None:
        """The first row with room for the layout, if any."""
        return next((row for row, room in enumerate(self.room) if room >= len(layout.ids)), None)

    def place(self, row: int, layout: Layout) -> None:
        """Puts the layout into that row."""
        self.order.append((row, self.width - self.room[row], layout))
        self.room[row] -= len(layout.ids)

    def packed(self) -> Packed:
        """All rows as tensors, targets in the order in which the layouts were placed."""
        ids, positions, segments = (torch.zeros(self.rows, self.width, dtype=torch.int32) for _ in range(3))
        owners = torch.full((self.rows, self.width), -1, dtype=torch.int32)
        index: list[int] = []
        labels: list[int] = []
        for number, (row, start, layout) in enumerate(self.order):
            end = start + len(layout.ids)
            ids[row, start:end] = torch.tensor(layout.ids)
            positions[row, start:end] = torch.tensor(layout.positions)
            segments[row, start:end] = torch.tensor(layout.segments)
            owners[row, start:end] = number
            flat = row * self.width + end - 1
            index += range(flat - layout.answer, flat)
            labels += layout.ids[len(layout.ids) - layout.answer :]
        return Packed(ids, positions, segments, owners, torch.tensor(index), torch.tensor(labels))
