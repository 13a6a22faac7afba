"""The blocks of one segment (a unit or a context) in token order, and the slot of each of its tokens.

`extend` says which blocks must be copied.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ewe.engine.kvcache.block_manager import BlockManager

_MIN_CAPACITY = 64


class BlockTable:
    """Where the tokens of one segment lie; empty at first. Token i is in slot `slots()[i]`.

    Blocks may be shared with other tables. Only the last block can be partly filled, and only there is anything ever
    written, so a full block is shared for good, while a partly filled one is replaced before its first write.
    """

    def __init__(self, manager: BlockManager) -> None:
        self.blocks: list[int] = []
        self.length = 0
        self._manager = manager
        self._buffer: NDArray[np.int64] = np.empty(_MIN_CAPACITY, dtype=np.int64)
        self._exposed = 0  # leading entries of the buffer that callers may still hold a view of
        self._view: NDArray[np.int64] | None = None

    def blocks_needed(self, num_tokens: int) -> int:
        """Free blocks that `extend(num_tokens)` takes, the copy of a shared last block included."""
        if num_tokens < 0:
            raise ValueError(f"cannot extend by {num_tokens} tokens")
        total = -(-(self.length + num_tokens) // self._manager.block_size)
        return total - len(self.blocks) + self._must_copy(num_tokens)

    def extend(self, num_tokens: int) -> list[tuple[int, int]]:
        """Make room for `num_tokens` more tokens; returns the (source, destination) block copies to do first.

        The copies must be done in the order of the `extend` calls and before anything is written to any slot. Raises
        OutOfBlocksError if blocks are short, and then changes nothing.
        """
        if num_tokens == 1 and self.extend_in_place():
            return []
        new_blocks = self._manager.allocate(self.blocks_needed(num_tokens))
        copies: list[tuple[int, int]] = []
        first_changed = self.length
        if self._must_copy(num_tokens):
            shared = self.blocks[-1]
            self.blocks[-1] = new_blocks.pop(0)
            self._manager.release([shared])
            copies.append((shared, self.blocks[-1]))
            first_changed -= self.length % self._manager.block_size
        self.blocks += new_blocks
        self.length += num_tokens
        self._write_slots(first_changed)
        return copies

    def extend_in_place(self) -> bool:
        """As `extend(1)` where the last block and the buffer have room, which takes no block; else changes nothing.

        What most steps do.
        """
        length = self.length
        is_there = length % self._manager.block_size and self._exposed <= length < len(self._buffer)
        if not is_there or self._must_copy(1):
            return False
        self._buffer[length] = self._buffer[length - 1] + 1
        self.length, self._view = length + 1, None
        return True

    def truncate(self, length: int) -> None:
        """Drop the tokens from `length` on and release the blocks that hold none of the rest.

        Raises ValueError unless 0 <= length <= the present length.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate {self.length} tokens to {length}")
        kept = -(-length // self._manager.block_size)
        self._manager.release(self.blocks[kept:])
        del self.blocks[kept:]
        self.length = length
        self._view = None

    def slots(self) -> NDArray[np.int64]:
        """The slot of every token, int64 [length]; a read-only view that later calls on the table never change.

        The same array again as long as nothing has changed, so that callers can know a unit by it.
        """
        if self._view is None:
            if self._exposed < self.length:
                self._exposed = self.length
            self._view = self._buffer[: self.length]
            self._view.flags.writeable = False
        return self._view

    def fork(self) -> BlockTable:
        """A second table with the same tokens in the same blocks, one reference more on each."""
        twin = BlockTable(self._manager)
        self._manager.share(self.blocks)
        twin.blocks = list(self.blocks)
        twin.length = self.length
        twin._buffer = self._buffer.copy()
        return twin

    def free(self) -> None:
        """Drop all tokens and release all blocks; the table is empty then and may be used again."""
        self.truncate(0)

    def _must_copy(self, num_tokens: int) -> bool:
        """Whether writing `num_tokens` tokens would write into a block that others hold too."""
        partly_filled = self.length % self._manager.block_size > 0
        return num_tokens > 0 and partly_filled and self._manager.reference_count(self.blocks[-1]) > 1

    def _write_slots(self, start: int) -> None:
        """Fill in the slots of the tokens from `start` on."""
        self._view = None
        if self.length > len(self._buffer) or start < self._exposed:
            # Views handed out keep the old buffer. Doubling makes the cost per appended token constant.
            capacity = len(self._buffer) if self.length <= len(self._buffer) else 2 * self.length
            grown = np.empty(capacity, dtype=np.int64)
            grown[:start] = self._buffer[:start]
            self._buffer = grown
            self._exposed = 0
        size = self._manager.block_size
        while start < self.length:
            index, offset = divmod(start, size)
            stop = min(self.length, (index + 1) * size)
            first = self.blocks[index] * size + offset
            self._buffer[start:stop] = np.arange(first, first + stop - start)
            start = stop
