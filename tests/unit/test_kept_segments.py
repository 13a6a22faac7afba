"""What rows of single tokens see is arranged once, and again when it changes: the arrays are those of a first step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.engine.attention.block_lists import BlockLists, Tables
from ewe.engine.attention.decode_arrays import DecodeArrays, decode_arrays
from ewe.engine.attention.metadata import ForwardRow, place_rows
from ewe.engine.attention.segments import Segments

BLOCK = 4
UNITS = [np.arange(number * 64, number * 64 + 6 + number) for number in range(5)]
PREFIXES = [None, np.arange(640, 651), np.arange(700, 713)]
MEMORIES = [(), (0,), (1, 3), (1, 3, 4), (2,)]


def context(row: int, length: int) -> np.ndarray:
    return np.arange(1000 + 512 * row, 1000 + 512 * row + length)


def arrays_of(lists: BlockLists, rows: list[ForwardRow], window: int | None) -> dict[str, list]:
    tables = Tables(lists)
    found = decode_arrays(place_rows(rows, "paper", keep_order=True).rows, tables, window, 3, 40)
    names = [*DecodeArrays.__slots__[:-1], "owners"]
    return {name: np.asarray(getattr(found, name)).tolist() for name in names} | {"tables": tables.blocks().tolist()}


class Batch:
    """Rows whose memories are tuples that stay the same objects until they change, as those of sequences do."""

    def __init__(self) -> None:
        self.seen = [self.memory(0), self.memory(2), self.memory(2), self.memory(1)]
        self.lengths = [5, 130, 40, 7]
        self.prefixes: list[np.ndarray | None] = [None] * 4

    def memory(self, kind: int, weight: float = 1.0) -> tuple[tuple[np.ndarray, ...], tuple[float, ...]]:
        return tuple(UNITS[number] for number in MEMORIES[kind]), (weight,) * len(MEMORIES[kind])

    def rows(self) -> list[ForwardRow]:
        parts = zip(self.lengths, self.seen, self.prefixes, strict=True)
        return [
            ForwardRow([1], 0, context(number, length), units, weights, prefix_slots=prefix)
            for number, (length, (units, weights), prefix) in enumerate(parts)
        ]

    def change(self, event: str, number: int) -> None:
        row = number % len(self.lengths)
        if event == "memory":
            self.seen[row] = self.memory(number % len(MEMORIES))
        elif event == "weight":
            self.seen[row] = self.seen[row][0], (0.25 + number,) * len(self.seen[row][0])
        elif event == "prefix":
            self.prefixes[row] = PREFIXES[number % 3]
        elif event == "leave" and len(self.lengths) > 1:
            for part in (self.seen, self.lengths, self.prefixes):
                del part[row]
        elif event == "long":
            self.lengths[row] += 90
        self.lengths = [length + 1 for length in self.lengths]


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["on", "on", "memory", "weight", "prefix", "leave", "long"]), st.integers(0, 9)),
        max_size=12,
    )
)
def test_arrays_of_step_after_step_are_those_of_each_step_alone(events: list[tuple[str, int]]) -> None:
    lists, batch = BlockLists(BLOCK), Batch()
    for event, number in [("on", 0), *events]:
        batch.change(event, number)
        for window in (None, 32):
            kept = arrays_of(lists, batch.rows(), window)
            fresh = arrays_of(BlockLists(BLOCK), batch.rows(), window)
            if kept != fresh:  # units are numbered in the order in which they were first seen
                assert_alike(kept, fresh)


def assert_alike(kept: dict[str, list], fresh: dict[str, list]) -> None:
    """The same pieces of the same blocks, with the same readers, whatever the order of the units."""
    assert kept["begins"] == fresh["begins"]
    assert kept["biases"] == fresh["biases"]
    assert kept["owners"] == fresh["owners"]
    assert described(kept) == described(fresh)


def described(arrays: dict[str, list]) -> list:
    pieces = [*arrays["alone"], *arrays["shared"]]
    return sorted(
        (
            arrays["tables"][begin + first // BLOCK : begin + -(-last // BLOCK)],
            (first, last),
            sorted(arrays["entries"][entry : entry + readers]),
        )
        for begin, first, last, entry, readers in pieces
    )


def test_steps_that_follow_arrange_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    lists, batch = BlockLists(BLOCK), Batch()
    arrays_of(lists, batch.rows(), None)

    def refuse(*_: object) -> None:
        raise AssertionError("arranged anew")

    monkeypatch.setattr(Segments, "of", refuse)
    monkeypatch.setattr(Segments, "_new_states", refuse)
    batch.change("on", 0)
    arrays_of(lists, batch.rows(), None)
