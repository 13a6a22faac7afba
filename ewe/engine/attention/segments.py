"""What the rows of single tokens see, as arrays that are kept from step to step while their memories stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ewe.engine.attention.metadata import IntArray, PlacedRow

Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The units of one row that hold tokens: their numbers (int64 [n]) and their places among the row's units.

    slots: what it was made of, kept so that nothing else gets its identity.
    """

    numbers: IntArray
    places: IntArray
    slots: tuple[IntArray, ...]


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """What follows from how many pieces each group has (`pieces_of`).

    Per piece: its group (owner), the how manieth of it (number), how many read it (readers) and the first of its
    entries; most_sharing: the most readers of one piece. entries, biases and begins: see `DecodeArrays`. states_of: per
    segment.
    """

    pieces_of: IntArray
    owner: IntArray
    number: IntArray
    readers: IntArray
    first_entry: IntArray
    most_sharing: int
    entries: Int32Array
    biases: npt.NDArray[np.float32]
    begins: Int32Array
    states_of: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Every non-empty segment of every row, row after row; each row's last one is its context.

    units: the numbers of the distinct units. Groups are the distinct segments: these units, then the contexts. Per
    segment: group, row (of the batch), bias. first [rows]: each row's first segment. memories: each row's.
    """

    units: list[int]
    group: IntArray
    row: IntArray
    bias: npt.NDArray[np.float32]
    first: IntArray
    memories: Sequence[Memory]
    _states: dict[int | None, States] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[PlacedRow], memories: Sequence[Memory], num_units: int) -> Segments:
        """The segments of rows with these memories; num_units: how many numbers there are."""
        held = np.concatenate([memory.numbers for memory in memories])
        is_held = np.zeros(num_units, bool)
        is_held[held] = True
        numbers = np.flatnonzero(is_held)
        counts = np.array([len(memory.numbers) for memory in memories]) + 1
        contexts = np.cumsum(counts) - 1
        is_unit = np.ones(len(held) + len(rows), bool)
        is_unit[contexts] = False
        group = np.empty(len(is_unit), np.int64)
        group[is_unit], group[contexts] = (np.cumsum(is_held) - 1)[held], len(numbers) + np.arange(len(rows))
        row = np.repeat(np.arange(len(rows)), counts)
        return cls(numbers.tolist(), group, row, _biases(rows, memories), contexts + 1 - counts, memories)

    def states(self, window: int | None, pieces_of: IntArray) -> States:
        """What follows from so many pieces per group; what the last step had with this window, if they are the same."""
        known = self._states.get(window)
        if known is None or not np.array_equal(known.pieces_of, pieces_of):
            known = self._states[window] = self._new_states(pieces_of)
        return known

    def _new_states(self, pieces_of: IntArray) -> States:
        readers_of = np.bincount(self.group, minlength=len(pieces_of))
        states_of = pieces_of[self.group]
        state_begin = _before(states_of)
        owner, number = _ragged(pieces_of)
        readers = readers_of[owner]
        # Entries go piece by piece, the readers of each in the order of rows. Of a single token the row is the token.
        entry_piece, reader = _ragged(readers)
        by_group = np.argsort(self.group, kind="stable")
        segment = by_group[_before(readers_of)[owner[entry_piece]] + reader]
        entries = columns(self.row[segment], state_begin[segment] + number[entry_piece])
        return States(
            pieces_of=pieces_of,
            owner=owner,
            number=number,
            readers=readers,
            first_entry=_before(readers),
            most_sharing=int(readers_of.max()),
            entries=entries,
            biases=np.repeat(self.bias, states_of),
            begins=np.append(state_begin[self.first], len(entries)).astype(np.int32),
            states_of=states_of,
        )


def columns(*arrays: IntArray) -> Int32Array:
    """Arrays of one length side by side."""
    table = np.empty((len(arrays[0]), len(arrays)), np.int32)
    for number, column in enumerate(arrays):
        table[:, number] = column
    return table


def _biases(rows: Sequence[PlacedRow], memories: Sequence[Memory]) -> npt.NDArray[np.float32]:
    """The biases of the segments that hold tokens."""
    biases: list[float] = []
    for item, memory in zip(rows, memories, strict=True):
        own = item.memory_biases
        biases += own if len(memory.places) == len(own) else [own[place] for place in memory.places]
        biases.append(item.context_bias)
    return np.array(biases, np.float32)


def _before(counts: IntArray) -> IntArray:
    """The sum of the counts before each."""
    return np.cumsum(counts) - counts


def _ragged(counts: IntArray) -> tuple[IntArray, IntArray]:
    """For counts [2, 3]: whose item it is [0, 0, 1, 1, 1], and the how manieth [0, 1, 0, 1, 2]."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - _before(counts)[owner]
