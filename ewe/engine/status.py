"""What an engine is doing at one moment, for those who watch it from outside.

Reads the parts of the engine from another thread than theirs, so figures of one moment may differ by a step from each
other; changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ewe.engine.startup.running_engine import Engine


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """running: answers that are being written; waiting: those that are not yet, or have been swapped out.

    stalled_s: seconds since the loop last turned. Blocks and units are those of the KV pool; unused_blocks are kept for
    units that nobody holds, and can be taken at any time. unit_loads: how many of the misses came from files.
    graphs, failed_graphs: CUDA graphs that passes replay, and captures that failed.
    """

    running: int
    waiting: int
    stalled_s: float
    num_blocks: int
    free_blocks: int
    unused_blocks: int
    units: int
    unit_hits: int
    unit_misses: int
    unit_loads: int
    graphs: int
    failed_graphs: int

    @property
    def cache_usage(self) -> float:
        """The share of the blocks that somebody holds, in [0, 1]."""
        return 1 - (self.free_blocks + self.unused_blocks) / self.num_blocks


def status_of(engine: Engine, stalled_s: float) -> EngineStatus:
    """The figures of an engine's parts."""
    block_manager, cache, decoder = engine.block_manager, engine.memory_manager.cache, engine.decoder
    sequences = [sequence for sequence in engine.core.active.sequences if not sequence.policy.is_composed]
    running = sum(sequence.schedule.is_admitted and sequence.schedule.swapped is None for sequence in sequences)
    waiting = sum(1 + len(sequence.siblings) for sequence in sequences) - running
    return EngineStatus(
        running=running,
        waiting=waiting,
        stalled_s=stalled_s,
        num_blocks=block_manager.num_blocks - 1,
        free_blocks=block_manager.num_free,
        unused_blocks=cache.num_cached_blocks,
        units=cache.num_units,
        unit_hits=cache.hits,
        unit_misses=cache.misses,
        unit_loads=cache.loads,
        graphs=0 if decoder is None else decoder.num_graphs,
        failed_graphs=0 if decoder is None else decoder.num_failed,
    )
