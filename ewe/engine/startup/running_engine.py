"""The parts of a running engine that its owner needs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ewe.config import Config
    from ewe.engine.core import EngineCore
    from ewe.engine.distributed.executor import Executor
    from ewe.engine.inputs.input_processor import InputProcessor
    from ewe.engine.kvcache.block_manager import BlockManager
    from ewe.engine.kvcache.pool import KVPool
    from ewe.engine.memory_manager import MemoryManager
    from ewe.engine.model_executor.static_decode import StaticDecoder
    from ewe.engine.models.loader import LoadedModel
    from ewe.engine.startup.budget import MemoryBudget
    from ewe.engine.units.precomputed import PrecomputedUnits


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine; changed: ends its loop's waiting. decoder: None where no steps are captured.

    executor: of the other ranks, None in one process.
    """

    config: Config
    loaded: LoadedModel
    core: EngineCore
    input_processor: InputProcessor
    block_manager: BlockManager
    memory_manager: MemoryManager
    changed: threading.Event
    pool: KVPool
    precomputed: PrecomputedUnits | None
    budget: MemoryBudget | None
    decoder: StaticDecoder | None = None
    executor: Executor | None = None
