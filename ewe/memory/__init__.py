"""Working memory: units, lanes, and the cache of encoded units."""

from ewe.memory.unit_cache import EncodedUnit, UnitCache
from ewe.memory.unit_text import UnitText, UnitTokenizer, unit_weight
from ewe.memory.working_memory import MemorySnapshot, MemoryUnit, WorkingMemory

__all__ = [
    "EncodedUnit",
    "MemorySnapshot",
    "MemoryUnit",
    "UnitCache",
    "UnitText",
    "UnitTokenizer",
    "WorkingMemory",
    "unit_weight",
]
