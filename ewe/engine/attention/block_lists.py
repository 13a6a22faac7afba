"""The lists of blocks that kernels find segments by."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ewe.engine.attention.metadata import ForwardRow, IntArray, PlacedRow
from ewe.engine.attention.segments import Memory, Segments

# Units or memories that are remembered at most; then all are forgotten, which costs one slower step.
_MOST_KNOWN = 8192


class BlockLists:
    """Numbers units by their blocks; a slot array that was seen before is known by its identity.

    A table hands out the same array as long as nothing changes, and a working memory the same tuple of them, so most
    steps find the rows that the last one had, and compute nothing of what they see beside their contexts. `firsts` (the
    first slot of each block) and `lengths` hold what belongs to each number.
    """

    def __init__(self, block_size: int) -> None:
        self.firsts: list[IntArray] = []
        self.lengths: list[int] = []
        self.block_size = block_size
        self._numbers: dict[tuple[bytes, int], int] = {}
        self._known: dict[int, tuple[int, IntArray]] = {}
        self._memories: dict[tuple[int, ...], Memory] = {}
        # By a row's prefix and its tuple of units, which are kept for the same reason.
        self._rows: dict[tuple[int, int], tuple[Memory, IntArray | None, tuple[IntArray, ...]]] = {}
        # The rows of the last step, by what they see, and its segments.
        self._last: list[tuple[int, int, int]] = []
        self._segments: Segments | None = None
        self._biases: list[list[float]] = []  # kept so that nothing else gets their identities

    def begin(self) -> None:
        """To be called before a plan is made: numbers hold until the next call."""
        if max(len(self._known), len(self._memories), len(self._rows)) > _MOST_KNOWN:
            self.firsts, self.lengths = [], []
            self._numbers, self._known, self._memories, self._rows = {}, {}, {}, {}
            self._last, self._segments = [], None

    def segments(self, rows: Sequence[PlacedRow]) -> Segments:
        """What rows of one token each see; the same object as in the last step if that has not changed."""
        seen = [(id(item.row.unit_slots), id(item.row.prefix_slots), id(item.memory_biases)) for item in rows]
        if self._segments is None or seen != self._last:
            memories = [self.memory(item.row) for item in rows]
            self._segments = Segments.of(rows, memories, len(self.lengths))
            self._last, self._biases = seen, [item.memory_biases for item in rows]
        return self._segments

    def unit(self, slots: IntArray) -> int:
        """The number of a unit."""
        known = self._known.get(id(slots))
        if known is not None:
            return known[0]
        firsts = slots[:: self.block_size]
        number = self._numbers.setdefault((firsts.tobytes(), len(slots)), len(self.firsts))
        if number == len(self.firsts):
            self.firsts.append(firsts)
            self.lengths.append(len(slots))
        self._known[id(slots)] = number, slots
        return number

    def memory(self, row: ForwardRow) -> Memory:
        """What a row sees beside its context, its prefix as the first of its units; those without tokens left out."""
        key = id(row.prefix_slots), id(row.unit_slots)
        known = self._rows.get(key)
        if known is None:
            known = self._rows[key] = self._memory(row.memory_slots), row.prefix_slots, row.unit_slots
        return known[0]

    def _memory(self, segments: tuple[IntArray, ...]) -> Memory:
        """Of other sequences, too, whose segments are the same in other tuples."""
        key = tuple(map(id, segments))
        memory = self._memories.get(key)
        if memory is None:
            places = [place for place, slots in enumerate(segments) if len(slots)]
            numbers = [self.unit(segments[place]) for place in places]
            memory = Memory(np.array(numbers, np.int64), np.array(places, np.int64), segments)
            self._memories[key] = memory
        return memory


class Tables:
    """One plan's lists in a row; a unit's list is kept once. Segments fill blocks from the first slot of one on."""

    def __init__(self, lists: BlockLists) -> None:
        lists.begin()
        self.lists = lists
        self.length = 0
        self._firsts: list[IntArray] = []
        self._begins: dict[int, int] = {}

    def add_units(self, numbers: Sequence[int]) -> IntArray:
        """Where the list of each of these units begins, the first of its keys and the end of the last [n, 3]."""
        lengths = self.lists.lengths
        spans = [(self.add_unit(number), 0, lengths[number]) for number in numbers]
        return np.array(spans, np.int64).reshape(-1, 3)

    def add_unit(self, number: int) -> int:
        """Where the list of the unit of this number begins."""
        begin = self._begins.setdefault(number, self.length)
        if begin == self.length:
            self._append(self.lists.firsts[number])
        return begin

    def add_context(self, slots: IntArray) -> int:
        """Where the context's list begins."""
        begin = self.length
        self._append(slots[:: self.lists.block_size])
        return begin

    def add_contexts(self, contexts: Sequence[IntArray], lengths: IntArray) -> IntArray:
        """Where the list of each of many contexts begins, which are of these lengths."""
        size = self.lists.block_size
        self._firsts += [slots[::size] for slots in contexts]
        ends = self.length + np.cumsum(-(-lengths // size))
        begins = np.append(self.length, ends[:-1])
        self.length = int(ends[-1])
        return begins

    def blocks(self) -> npt.NDArray[np.int32]:
        """All lists."""
        return (np.concatenate(self._firsts) // self.lists.block_size).astype(np.int32)

    def _append(self, firsts: IntArray) -> None:
        self._firsts.append(firsts)
        self.length += len(firsts)
