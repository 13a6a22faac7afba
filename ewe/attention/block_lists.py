"""The lists of blocks that kernels find segments by.

Owns: turning slots into blocks, once per unit, and laying the lists of one plan out in a row. Knows no rows and no
device.
"""

from __future__ import annotations

from ewe.attention.metadata import IntArray

# Units that are remembered at most; twice as many lists may be held.
_MOST_UNITS = 4096


class BlockLists:
    """Block lists of units by the identity of their slot arrays, which hardly change from step to step.

    A unit whose table hands out the same array again is looked up; any other array costs a division per block.
    """

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        # By id, with the array itself, so that the id stays its own.
        self._new: dict[int, tuple[IntArray, IntArray, bytes]] = {}
        self._old: dict[int, tuple[IntArray, IntArray, bytes]] = {}

    def blocks(self, slots: IntArray) -> IntArray:
        """Blocks of a segment, whose tokens fill blocks from the first slot of one on."""
        return slots[:: self._block_size] // self._block_size

    def unit(self, slots: IntArray) -> tuple[IntArray, bytes]:
        """A unit's blocks, and the same as bytes to know it by."""
        known = self._new.get(id(slots)) or self._old.get(id(slots))
        if known is None:
            blocks = self.blocks(slots)
            known = (slots, blocks, blocks.tobytes())
        if len(self._new) >= _MOST_UNITS:
            self._old, self._new = self._new, {}
        self._new[id(slots)] = known
        return known[1:]


class Tables:
    """One plan's lists in a row; a unit's list is kept once."""

    def __init__(self, lists: BlockLists) -> None:
        self.parts: list[IntArray] = []
        self.length = 0
        self._lists = lists
        self._begins: dict[bytes, int] = {}

    def add_unit(self, slots: IntArray) -> int:
        """Where the unit's list begins."""
        blocks, key = self._lists.unit(slots)
        begin = self._begins.setdefault(key, self.length)
        if begin == self.length:
            self._append(blocks)
        return begin

    def add_context(self, slots: IntArray) -> int:
        """Where the context's list begins."""
        begin = self.length
        self._append(self._lists.blocks(slots))
        return begin

    def _append(self, blocks: IntArray) -> None:
        self.parts.append(blocks)
        self.length += len(blocks)
