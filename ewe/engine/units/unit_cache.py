"""Encoded units, each content once, shared by every request that holds it; and the prefixes that units follow."""

from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass

from torch import Tensor

from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.block_table import BlockTable
from ewe.errors import OutOfBlocksError

UnitKey = tuple[int, ...]
_Place = tuple[str, str, UnitKey, UnitKey]


@dataclass(eq=False, slots=True)
class EncodedUnit:
    """The KV of one unit text; `ready` once the pass that writes its keys and values is planned: whatever runs then, or
    later, may attend to it. Immutable from then on.

    token_ids: the content itself, so that two never share a place. prefix_ids: the tokens that it was encoded after, at
    positions from len(prefix_ids) on; its KV depends on them. A prefix itself is a unit without one. adapter: the LoRA
    adapter that computes it. salt: who shares it; the same content under another salt is another unit.
    num_planned: tokens whose pass is planned, of a long one that takes several. was_loaded: whether its KV came from
    a file instead of the model; reading: while it is being read from there.
    """

    token_ids: tuple[int, ...]
    table: BlockTable
    ready: bool = False
    references: int = 1
    salt: str = ""
    prefix_ids: UnitKey = ()
    adapter: str = ""
    num_planned: int = 0
    was_loaded: bool = False
    reading: Future[Tensor] | None = None

    @property
    def place(self) -> _Place:
        """What the cache knows it by: what computes it, who shares it, what it follows, what it holds."""
        return self.adapter, self.salt, self.prefix_ids, self.token_ids


class UnitCache:
    """Units by content under one model and one pool.

    keep_unused: whether ready units that nobody holds stay until their blocks are needed, least recently used first.
    `hits` and `misses` count the acquired units that were there before, and those that were new; `loads` those whose KV
    came from files (counted by the scheduler). num_cached_blocks: those of units that nobody holds, which `evict` could
    free now.
    """

    def __init__(self, manager: BlockManager, keep_unused: bool) -> None:
        self._manager = manager
        self._keep_unused = keep_unused
        self._units: dict[_Place, EncodedUnit] = {}
        self._unused: OrderedDict[_Place, EncodedUnit] = OrderedDict()  # least recently used first
        self.num_cached_blocks = 0
        self.hits = 0
        self.misses = 0
        self.loads = 0

    @property
    def num_units(self) -> int:
        """Units in the pool, held or not."""
        return len(self._units)

    def acquire(self, token_ids: UnitKey, salt: str = "", prefix_ids: UnitKey = (), adapter: str = "") -> EncodedUnit:
        """The unit with this content, salt, prefix and adapter, one reference more.

        A new one has blocks but is not ready: the caller encodes it. Unused units are given up if a new one needs their
        blocks. Raises OutOfBlocksError, and then changes nothing, if that is not enough; ValueError without tokens.
        """
        if not token_ids:
            raise ValueError("a unit needs at least one token")
        place = (adapter, salt, prefix_ids, token_ids)
        unit = self._units.get(place)
        if unit is not None:
            if not unit.references:
                self._take_unused(place)
            unit.references += 1
            self.hits += 1
            return unit
        table = BlockTable(self._manager)
        missing = table.blocks_needed(len(token_ids)) - self._manager.num_free
        if missing > self.num_cached_blocks:
            raise OutOfBlocksError(f"a unit of {len(token_ids)} tokens needs {missing} blocks more than are free")
        self.evict(missing)
        table.extend(len(token_ids))
        unit = self._units[place] = EncodedUnit(token_ids, table, salt=salt, prefix_ids=prefix_ids, adapter=adapter)
        self.misses += 1
        return unit

    def share(self, unit: EncodedUnit) -> None:
        """One reference more for a further holder; raises ValueError if nobody holds the unit."""
        self._check_held(unit)
        unit.references += 1

    def release(self, unit: EncodedUnit) -> None:
        """One reference less; a unit without any is kept if it is ready and unused ones are, and freed otherwise.

        Raises ValueError if nobody holds the unit.
        """
        self._check_held(unit)
        unit.references -= 1
        if unit.references:
            return
        if unit.ready and self._keep_unused:
            self._unused[unit.place] = unit
            self.num_cached_blocks += len(unit.table.blocks)
        else:
            self._drop(unit)

    def evict(self, num_blocks: int) -> int:
        """Free unused units, least recently used first, until `num_blocks` blocks are freed; returns how many were."""
        freed = 0
        while freed < num_blocks and self._unused:
            unit = self._take_unused(next(iter(self._unused)))
            freed += len(unit.table.blocks)
            self._drop(unit)
        return freed

    def holders(self) -> list[list[int]]:
        """The blocks of every unit, held or unused, each unit once; for `BlockManager.check_integrity`."""
        return [unit.table.blocks for unit in self._units.values()]

    def _check_held(self, unit: EncodedUnit) -> None:
        if self._units.get(unit.place) is not unit or not unit.references:
            raise ValueError("nobody holds this unit")

    def _take_unused(self, place: _Place) -> EncodedUnit:
        unit = self._unused.pop(place)
        self.num_cached_blocks -= len(unit.table.blocks)
        return unit

    def _drop(self, unit: EncodedUnit) -> None:
        del self._units[unit.place]
        unit.table.free()
