"""What the decode kernels read about the single tokens of a step, as arrays on the host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ewe.engine.attention.block_lists import Memory, Tables
from ewe.engine.attention.metadata import IntArray, PlacedRow

# Pieces shorter than this cost more in states written and merged than they win in parallel work,
_LEAST_PIECE = 128
# and beyond this length the states are 1% of the traffic, while the last wave of programs grows uneven.
_MOST_PIECE = 512
# Keys of one pass of a kernel; pieces are whole passes.
_PASS = 64

Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class DecodeArrays:
    """alone, shared: pieces [n, 5] with one entry and with several (at most most_sharing), the longest first.

    entries [states, 2], biases float32 [states] and begins [rows + 1]: all as `attend_pieces` and `merge_states` take
    them; the states of a row are neighbours. find_owners: makes `owners`, which most steps do without.
    """

    alone: Int32Array
    shared: Int32Array
    most_sharing: int
    entries: Int32Array
    biases: npt.NDArray[np.float32]
    begins: Int32Array
    find_owners: Callable[[], Int32Array]

    @property
    def num_states(self) -> int:
        """States of all rows."""
        return len(self.biases)

    @property
    def counts(self) -> Int32Array:
        """How many pieces have one entry, and how many several."""
        return np.array([len(self.alone), len(self.shared)], np.int32)

    @property
    def owners(self) -> Int32Array:
        """[states, 3]: each state's row of the batch, its row in the caller's order, its segment."""
        return self.find_owners()


@dataclass(frozen=True, slots=True)
class _Segments:
    """Every non-empty segment of every row, row after row; each row's last one is its context.

    spans [groups, 3]: the distinct segments: begin of the list of blocks, first key, last key (exclusive). Per segment:
    group (of spans), row (of the batch), bias. first [rows]: each row's first segment. memories: each row's.
    """

    spans: IntArray
    group: IntArray
    row: IntArray
    bias: npt.NDArray[np.float32]
    first: IntArray
    memories: Sequence[Memory]


def decode_arrays(
    rows: Sequence[PlacedRow], tables: Tables, window: int | None, wanted_pieces: int, most_states: int | None = None
) -> DecodeArrays:
    """The arrays of rows of one token each; wanted_pieces: how many pieces of keys keep the device busy.

    most_states: pieces grow until there are no more states, or until every segment is one piece.
    """
    segments = _segments(rows, tables, window)
    group, spans = segments.group, segments.spans
    lengths = spans[:, 2] - spans[:, 1]
    piece = min(max(-(-int(lengths.sum()) // (wanted_pieces * _PASS)) * _PASS, _LEAST_PIECE), _MOST_PIECE)
    pieces_of = -(-lengths // piece)
    while most_states is not None and pieces_of[group].sum() > most_states and pieces_of.max() > 1:
        piece *= 2
        pieces_of = -(-lengths // piece)
    readers_of = np.bincount(group, minlength=len(spans))
    states_of = pieces_of[group]
    state_begin = _before(states_of)

    owner, number = _ragged(pieces_of)
    begin = spans[owner, 1] + number * piece
    readers = readers_of[owner]
    pieces = _columns(spans[owner, 0], begin, np.minimum(begin + piece, spans[owner, 2]), _before(readers), readers)
    longest_first = np.argsort(pieces[:, 1] - pieces[:, 2], kind="stable")
    ordered, is_alone = pieces[longest_first], readers[longest_first] == 1
    # Entries go piece by piece, the readers of each in the order of rows. Of a single token the row is the token.
    entry_piece, reader = _ragged(readers)
    by_group = np.argsort(group, kind="stable")
    segment = by_group[_before(readers_of)[owner[entry_piece]] + reader]
    entries = _columns(segments.row[segment], state_begin[segment] + number[entry_piece])
    return DecodeArrays(
        alone=ordered[is_alone],
        shared=ordered[~is_alone],
        most_sharing=int(readers_of.max()),
        entries=entries,
        biases=np.repeat(segments.bias, states_of),
        begins=np.append(state_begin[segments.first], len(entries)).astype(np.int32),
        find_owners=partial(_owners, rows, segments, states_of),
    )


def _segments(rows: Sequence[PlacedRow], tables: Tables, window: int | None) -> _Segments:
    lists = tables.lists
    memories = [lists.memory(item.row) for item in rows]
    held = np.concatenate([memory.numbers for memory in memories])
    is_held = np.zeros(len(lists.lengths), bool)
    is_held[held] = True
    numbers = np.flatnonzero(is_held)
    # Groups are the distinct units, then the contexts.
    units = [(tables.add_unit(number), 0, lists.lengths[number]) for number in numbers.tolist()]
    spans = np.concatenate([np.array(units, np.int64).reshape(-1, 3), _context_spans(rows, tables, window)])
    counts = np.array([len(memory.numbers) for memory in memories]) + 1
    contexts = np.cumsum(counts) - 1
    is_unit = np.ones(len(held) + len(rows), bool)
    is_unit[contexts] = False
    group = np.empty(len(is_unit), np.int64)
    group[is_unit], group[contexts] = (np.cumsum(is_held) - 1)[held], len(numbers) + np.arange(len(rows))
    row = np.repeat(np.arange(len(rows)), counts)
    return _Segments(spans, group, row, _biases(rows, memories), contexts + 1 - counts, memories)


def _context_spans(rows: Sequence[PlacedRow], tables: Tables, window: int | None) -> IntArray:
    """The spans of the rows' contexts [rows, 3]."""
    contexts = [item.row.context_slots for item in rows]
    ends = np.fromiter(map(len, contexts), np.int64, len(contexts))
    firsts = np.zeros_like(ends) if window is None else np.maximum(ends - window, 0)
    return np.stack([tables.add_contexts(contexts, ends), firsts, ends], 1)


def _biases(rows: Sequence[PlacedRow], memories: Sequence[Memory]) -> npt.NDArray[np.float32]:
    """The biases of the segments that hold tokens."""
    biases: list[float] = []
    for item, memory in zip(rows, memories, strict=True):
        own = item.memory_biases
        biases += own if len(memory.places) == len(own) else [own[place] for place in memory.places]
        biases.append(item.context_bias)
    return np.array(biases, np.float32)


def _owners(rows: Sequence[PlacedRow], segments: _Segments, states_of: IntArray) -> Int32Array:
    """See `DecodeArrays.owners`."""
    pairs = zip(rows, segments.memories, strict=True)
    places = np.concatenate([np.append(memory.places, len(item.memory_biases)) for item, memory in pairs])
    indices = np.array([item.index for item in rows])
    return np.repeat(_columns(segments.row, indices[segments.row], places), states_of, axis=0)


def _columns(*columns: IntArray) -> Int32Array:
    """Arrays of one length side by side."""
    table = np.empty((len(columns[0]), len(columns)), np.int32)
    for number, column in enumerate(columns):
        table[:, number] = column
    return table


def _before(counts: IntArray) -> IntArray:
    """The sum of the counts before each."""
    return np.cumsum(counts) - counts


def _ragged(counts: IntArray) -> tuple[IntArray, IntArray]:
    """For counts [2, 3]: whose item it is [0, 0, 1, 1, 1], and the how manieth [0, 1, 0, 1, 2]."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - _before(counts)[owner]
