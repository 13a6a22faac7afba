"""Who gives way when blocks run short.

Blocks go by arrival: an older sequence may take the blocks of a younger one, which moves to host memory and comes back
unchanged; nothing is recomputed but evicted units, whose KV depends on their own text alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.pool import KVPool
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.schedule_state import SwappedContext
from ewe.engine.scheduling.inflight_batch import SchedulerOutput
from ewe.engine.sequence import Sequence
from ewe.errors import OutOfBlocksError


@dataclass(eq=False)
class ContextSwapper:
    """Finds blocks for sequences of one pool. `swaps` counts the contexts that were moved to host memory."""

    block_manager: BlockManager
    pool: KVPool
    memory_manager: MemoryManager
    swaps: int = field(default=0, init=False)

    def make_room(self, blocks: int, requester: Sequence, plan: SchedulerOutput) -> bool:
        """Frees blocks for `requester`: unused units first, then the contexts of younger sequences."""
        while self.block_manager.num_free < blocks:
            missing = blocks - self.block_manager.num_free
            if not self.memory_manager.cache.evict(missing) and not self._swap_out_youngest(requester, plan):
                return False
        return True

    def acquire(self, acquire: Callable[[Sequence], None], requester: Sequence, plan: SchedulerOutput) -> bool:
        """Acquires what a sequence needs, at the cost of younger ones; returns whether there was room."""
        while True:
            try:
                acquire(requester)
                return True
            except OutOfBlocksError:
                if not self._swap_out_youngest(requester, plan):
                    return False

    def swap_in(self, sequence: Sequence, plan: SchedulerOutput) -> bool:
        """Brings a context back from host memory; returns whether there was room."""
        swapped = sequence.schedule.swapped
        assert swapped is not None
        if not self.make_room(sequence.table.blocks_needed(swapped.length), sequence, plan):
            return False
        if not self.acquire(self.memory_manager.resume, sequence, plan):
            return False
        if not self.make_room(sequence.table.blocks_needed(swapped.length), sequence, plan):
            self.memory_manager.suspend(sequence)
            return False
        sequence.table.extend(swapped.length)
        self.pool.write_blocks(sequence.table.blocks, swapped.blocks)
        sequence.schedule.swapped = None
        plan.progressed = True
        sequence.record("swap_in", blocks=len(sequence.table.blocks))
        return True

    def release(self, sequence: Sequence) -> None:
        """Gives back all that a finished sequence holds."""
        if sequence.schedule.swapped is None:
            self.memory_manager.release_all(sequence)
        sequence.table.free()
        sequence.schedule.swapped = None

    def _swap_out_youngest(self, requester: Sequence, plan: SchedulerOutput) -> bool:
        for victim in reversed(plan.candidates):
            if victim is requester:
                return False
            is_here = victim.schedule.is_admitted and victim.schedule.swapped is None and not victim.is_finished
            if is_here and victim not in plan.busy:
                self._swap_out(victim)
                return True
        return False

    def _swap_out(self, victim: Sequence) -> None:
        blocks = list(victim.table.blocks)
        victim.schedule.swapped = SwappedContext(self.pool.read_blocks(blocks), victim.table.length)
        victim.table.free()
        self.memory_manager.suspend(victim)
        self.swaps += 1
        victim.record("swap_out", blocks=len(blocks))
