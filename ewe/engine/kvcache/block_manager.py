"""Which blocks of the KV pool are free, and how many holders each of the others has."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ewe.errors import OutOfBlocksError

NULL_BLOCK = 0


class BlockManager:
    """Hands out the blocks 1..num_blocks - 1 (block_size tokens each) and counts their references.

    num_blocks includes the null block. Raises ValueError for fewer than two blocks or an empty block.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        if num_blocks < 2:
            raise ValueError(f"a pool needs the null block and at least one more, got num_blocks={num_blocks}")
        if block_size < 1:
            raise ValueError(f"block_size must be at least 1 token, got {block_size}")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._references = [0] * num_blocks
        self._free = list(range(num_blocks - 1, NULL_BLOCK, -1))

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` could hand out now."""
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """`count` blocks with one reference each; raises OutOfBlocksError if there are fewer, and then takes none."""
        if count < 0:
            raise ValueError(f"cannot allocate {count} blocks")
        if count > len(self._free):
            raise OutOfBlocksError(f"{count} blocks needed, {len(self._free)} of {self.num_blocks - 1} free")
        blocks = [self._free.pop() for _ in range(count)]
        for block in blocks:
            self._references[block] = 1
        return blocks

    def share(self, blocks: Sequence[int]) -> None:
        """One reference more per mention; raises ValueError if a block is free, and then changes nothing."""
        for block in blocks:
            if not self.reference_count(block):
                raise ValueError(f"block {block} is not held by anyone and cannot be shared")
        for block in blocks:
            self._references[block] += 1

    def release(self, blocks: Sequence[int]) -> None:
        """One reference less per mention; a block without references is free again.

        Raises ValueError if a block has fewer references than mentions, and then changes nothing.
        """
        for block, mentions in Counter(blocks).items():
            if self.reference_count(block) < mentions:
                raise ValueError(f"block {block} is released more often than it is held")
        for block in blocks:
            self._references[block] -= 1
            if not self._references[block]:
                self._free.append(block)

    def reference_count(self, block: int) -> int:
        """How many references a block has: 0 if it is free or the null block; ValueError if there is no such block."""
        if not 0 <= block < self.num_blocks:
            raise ValueError(f"there is no block {block} in a pool of {self.num_blocks}")
        return self._references[block]

    def is_shared(self, block: int) -> bool:
        """Whether a block that somebody holds has other holders, too."""
        return self._references[block] > 1

    def check_integrity(self, holders: Iterable[Sequence[int]]) -> None:
        """Raise AssertionError unless every count equals the block's mentions in `holders` and free + held = total.

        For tests, which pass the blocks of everything that is alive; the engine's loop never calls it.
        """
        mentions = Counter(block for holder in holders for block in holder)
        counted = {block: count for block, count in enumerate(self._references) if count}
        if counted != mentions:
            wrong = sorted(block for block in counted.keys() | mentions if counted.get(block, 0) != mentions[block])
            detail = ", ".join(f"{b}: counted {counted.get(b, 0)}, held {mentions[b]}" for b in wrong[:8])
            raise AssertionError(f"{len(wrong)} blocks with wrong reference counts ({detail})")
        expected_free = set(range(1, self.num_blocks)) - mentions.keys()
        if len(self._free) != len(expected_free) or set(self._free) != expected_free:
            raise AssertionError(f"free list holds {len(self._free)} blocks, {len(expected_free)} are not held")
