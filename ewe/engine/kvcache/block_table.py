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
        self._exposed = 0  # leading entries of the buffer that callers may still hold a view of
        self._view: NDArray[np.int64] | None = None
        self._use(np.empty(_MIN_CAPACITY, dtype=np.int64))

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
        first_changed = len(self.blocks)
        if self._must_copy(num_tokens):
            shared = self.blocks[-1]
            self.blocks[-1] = new_blocks.pop(0)
            self._manager.release([shared])
            copies.append((shared, self.blocks[-1]))
            first_changed -= 1
        self.blocks += new_blocks
        self.length += num_tokens
        self._view = None
        self._write_slots(first_changed)
        return copies

    def extend_in_place(self) -> bool:
        """As `extend(1)` if the last block has room and is nobody else's: no block is taken. Else changes nothing.

        What most steps do.
        """
        if not self.length % self._manager.block_size or self._manager.is_shared(self.blocks[-1]):
            return False
        self.length += 1
        self._view = None
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
            self._view = self._read_only[: self.length]
        return self._view

    def fork(self) -> BlockTable:
        """A second table with the same tokens in the same blocks, one reference more on each."""
        twin = BlockTable(self._manager)
        self._manager.share(self.blocks)
        twin.blocks = list(self.blocks)
        twin.length = self.length
        twin._use(self._buffer.copy())
        return twin

    def free(self) -> None:
        """Drop all tokens and release all blocks; the table is empty then and may be used again."""
        self.truncate(0)

    def _must_copy(self, num_tokens: int) -> bool:
        """Whether writing `num_tokens` tokens would write into a block that others hold too."""
        partly_filled = self.length % self._manager.block_size > 0
        return num_tokens > 0 and partly_filled and self._manager.is_shared(self.blocks[-1])

    def _write_slots(self, first: int) -> None:
        """Fill in the slots of the blocks from this one on, of all their places: tokens that follow find them there."""
        size = self._manager.block_size
        start, end = first * size, len(self.blocks) * size
        if end > len(self._buffer) or start < self._exposed:
            # Views handed out keep the old buffer. Doubling makes the cost per appended token constant.
            grown = np.empty(len(self._buffer) if end <= len(self._buffer) else 2 * end, dtype=np.int64)
            grown[:start] = self._buffer[:start]
            self._use(grown)
            self._exposed = 0
        numbers = np.array(self.blocks[first:], dtype=np.int64)
        self._buffer[start:end] = (numbers[:, None] * size + np.arange(size)).ravel()

    def _use(self, buffer: NDArray[np.int64]) -> None:
        """Makes this the buffer, of which callers get views that they cannot write to."""
        self._buffer, self._read_only = buffer, buffer.view()
        self._read_only.flags.writeable = False
