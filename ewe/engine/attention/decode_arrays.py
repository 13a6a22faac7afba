"""What the decode kernels read about the single tokens of a step, as arrays on the host."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ewe.engine.attention.block_lists import Tables
from ewe.engine.attention.metadata import IntArray, PlacedRow
from ewe.engine.attention.segments import Int32Array, Segments, States, columns

# Pieces shorter than this cost more in states written and merged than they win in parallel work,
_LEAST_PIECE = 128
# and beyond this length the states are 1% of the traffic, while the last wave of programs grows uneven.
_MOST_PIECE = 512
# Keys of one pass of a kernel; pieces are whole passes.
_PASS = 64


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


def decode_arrays(
    rows: Sequence[PlacedRow], tables: Tables, window: int | None, target_pieces: int, most_states: int | None
) -> DecodeArrays:
    """The arrays of rows of one token each; target_pieces: how many pieces of keys keep the device busy.

    most_states: pieces grow until there are no more states, or until every segment is one piece.
    """
    segments = tables.lists.segments(rows)
    # [groups, 3]: begin of the list of blocks, first key, last key (exclusive).
    spans = np.concatenate([tables.add_units(segments.units), _context_spans(rows, tables, window)])
    lengths = spans[:, 2] - spans[:, 1]
    piece = min(max(-(-int(lengths.sum()) // (target_pieces * _PASS)) * _PASS, _LEAST_PIECE), _MOST_PIECE)
    pieces_of = -(-lengths // piece)
    while most_states is not None and pieces_of[segments.group].sum() > most_states and pieces_of.max() > 1:
        piece *= 2
        pieces_of = -(-lengths // piece)
    states = segments.states(window, pieces_of)
    owner = states.owner
    begin = spans[owner, 1] + states.number * piece
    end = np.minimum(begin + piece, spans[owner, 2])
    pieces = columns(spans[owner, 0], begin, end, states.first_entry, states.readers)
    longest_first = np.argsort(begin - end, kind="stable")
    ordered, is_alone = pieces[longest_first], states.readers[longest_first] == 1
    return DecodeArrays(
        alone=ordered[is_alone],
        shared=ordered[~is_alone],
        most_sharing=states.most_sharing,
        entries=states.entries,
        biases=states.biases,
        begins=states.begins,
        find_owners=partial(_owners, rows, segments, states),
    )


def _context_spans(rows: Sequence[PlacedRow], tables: Tables, window: int | None) -> IntArray:
    """The spans of the rows' contexts [rows, 3]."""
    contexts = [item.row.context_slots for item in rows]
    ends = np.fromiter(map(len, contexts), np.int64, len(contexts))
    firsts = np.zeros_like(ends) if window is None else np.maximum(ends - window, 0)
    return np.stack([tables.add_contexts(contexts, ends), firsts, ends], 1)


def _owners(rows: Sequence[PlacedRow], segments: Segments, states: States) -> Int32Array:
    """See `DecodeArrays.owners`."""
    pairs = zip(rows, segments.memories, strict=True)
    places = np.concatenate([np.append(memory.places, len(item.memory_biases)) for item, memory in pairs])
    indices = np.array([item.index for item in rows])
    return np.repeat(columns(segments.row, indices[segments.row], places), states.states_of, axis=0)
