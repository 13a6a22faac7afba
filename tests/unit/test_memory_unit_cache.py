"""The unit cache: sharing by content, least recently used units first to go, no block lost."""

from collections import OrderedDict

import pytest
from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.block_table import BlockTable
from ewe.engine.units.unit_cache import EncodedUnit, UnitCache
from ewe.errors import OutOfBlocksError


def cache_of(num_blocks: int = 8, keep_unused: bool = True) -> tuple[BlockManager, UnitCache]:
    manager = BlockManager(num_blocks, block_size=4)
    return manager, UnitCache(manager, keep_unused)


def leave_unused(cache: UnitCache, *contents: tuple[int, ...]) -> None:
    for content in contents:
        unit = cache.acquire(content)
        unit.ready = True
        cache.release(unit)


def test_a_new_unit_has_blocks_and_is_not_ready() -> None:
    manager, cache = cache_of()
    unit = cache.acquire((5, 6, 7, 8, 9))
    assert unit.token_ids == (5, 6, 7, 8, 9)
    assert (unit.ready, unit.references, unit.table.length, len(unit.table.blocks)) == (False, 1, 5, 2)
    manager.check_integrity(cache.holders())


def test_the_same_content_is_one_unit() -> None:
    manager, cache = cache_of()
    first = cache.acquire((5, 6))
    assert cache.acquire((5, 6)) is first
    assert cache.acquire((6, 5)) is not first
    assert first.references == 2
    assert manager.num_free == 5


def test_an_unused_unit_is_found_again_ready() -> None:
    manager, cache = cache_of()
    leave_unused(cache, (1,))
    assert (cache.num_cached_blocks, manager.num_free) == (1, 6)
    unit = cache.acquire((1,))
    assert (unit.ready, unit.references, cache.num_cached_blocks) == (True, 1, 0)
    assert cache.evict(1) == 0


def test_a_unit_that_was_never_encoded_is_not_kept() -> None:
    manager, cache = cache_of()
    cache.release(cache.acquire((1,)))
    assert (cache.num_cached_blocks, manager.num_free, cache.holders()) == (0, 7, [])
    assert not cache.acquire((1,)).ready


def test_nothing_is_kept_if_unused_units_are_not_wanted() -> None:
    manager, cache = cache_of(keep_unused=False)
    leave_unused(cache, (1,))
    assert (cache.num_cached_blocks, manager.num_free) == (0, 7)


def test_eviction_takes_the_least_recently_used_first_and_no_more_than_needed() -> None:
    manager, cache = cache_of()
    leave_unused(cache, (1,), (2,) * 5, (3,), (1,))
    assert cache.evict(1) == 2
    assert cache.evict(0) == 0
    assert not cache.acquire((2,)).ready
    assert cache.acquire((3,)).ready
    assert cache.acquire((1,)).ready
    manager.check_integrity(cache.holders())


def test_eviction_returns_what_it_could_free() -> None:
    _, cache = cache_of()
    leave_unused(cache, (1,), (2,))
    held = cache.acquire((3,))
    assert cache.evict(5) == 2
    assert held.table.blocks


def test_acquiring_gives_up_unused_units_only_if_that_is_enough() -> None:
    manager, cache = cache_of(num_blocks=5)
    leave_unused(cache, (1,), (2,))
    held = cache.acquire((3,))
    with pytest.raises(OutOfBlocksError):
        cache.acquire((4,) * 16)
    assert (cache.num_cached_blocks, manager.num_free) == (2, 1)
    assert len(cache.acquire((4,) * 8).table.blocks) == 2
    assert cache.acquire((2,)).ready
    assert held.table.blocks
    manager.check_integrity(cache.holders())


def test_sharing_and_releasing_need_a_holder() -> None:
    _, cache = cache_of()
    kept = cache.acquire((1,))
    kept.ready = True
    cache.share(kept)
    assert kept.references == 2
    cache.release(kept)
    cache.release(kept)
    freed = cache.acquire((2,))
    cache.release(freed)
    stranger = EncodedUnit((1,), BlockTable(BlockManager(4, 4)))
    for unit in (kept, freed, stranger):
        with pytest.raises(ValueError, match="nobody holds"):
            cache.share(unit)
        with pytest.raises(ValueError, match="nobody holds"):
            cache.release(unit)


def test_a_freed_unit_is_not_mistaken_for_its_successor() -> None:
    _, cache = cache_of()
    old = cache.acquire((1,))
    cache.release(old)
    new = cache.acquire((1,))
    with pytest.raises(ValueError, match="nobody holds"):
        cache.release(old)
    assert new.references == 1


def test_a_unit_needs_tokens() -> None:
    _, cache = cache_of()
    with pytest.raises(ValueError, match="at least one token"):
        cache.acquire(())


Content = tuple[tuple[int, ...], tuple[int, ...]]  # a unit's prefix and tokens
CONTENTS: list[Content] = [((), (number,) * length) for number, length in enumerate((1, 4, 5, 9, 12, 30), 1)]
# The same tokens after a prefix, which is a unit itself.
CONTENTS += [(CONTENTS[1][1], CONTENTS[0][1]), (CONTENTS[1][1], CONTENTS[2][1]), (CONTENTS[0][1], CONTENTS[2][1])]


def content_of(unit: EncodedUnit) -> Content:
    return unit.prefix_ids, unit.token_ids


def blocks_of(content: Content) -> int:
    return -(-len(content[1]) // 4)


def test_the_same_tokens_after_another_prefix_are_another_unit() -> None:
    manager, cache = cache_of()
    bare = cache.acquire((5, 6))
    after = cache.acquire((5, 6), prefix_ids=(1, 2))
    assert after is not bare
    assert cache.acquire((5, 6), prefix_ids=(1, 2)) is after
    assert cache.acquire((5, 6), prefix_ids=(1, 3)) is not after
    assert cache.acquire((5, 6), "someone", (1, 2)) is not after
    assert (after.token_ids, after.prefix_ids) == (bare.token_ids, (1, 2))
    manager.check_integrity(cache.holders())


class CacheMachine(RuleBasedStateMachine):
    """The cache against a model of reference counts and an ordered dict of unused contents."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[EncodedUnit] = []
        self.ready: set[Content] = set()
        self.unused: OrderedDict[Content, None] = OrderedDict()
        self.others: list[list[int]] = []

    @initialize(keep_unused=st.booleans())
    def start(self, keep_unused: bool) -> None:
        self.keep_unused = keep_unused
        self.manager = BlockManager(num_blocks=11, block_size=4)
        self.cache = UnitCache(self.manager, keep_unused)

    def forget(self, num_blocks: int) -> int:
        """What eviction must do to the model; returns the blocks freed."""
        freed = 0
        while freed < num_blocks and self.unused:
            content, _ = self.unused.popitem(last=False)
            self.ready.discard(content)
            freed += blocks_of(content)
        return freed

    @rule(content=st.sampled_from(CONTENTS))
    def acquire(self, content: Content) -> None:
        prefix, tokens = content
        is_known = content in self.unused or any(content_of(unit) == content for unit in self.held)
        missing = 0 if is_known else blocks_of(content) - self.manager.num_free
        if missing > sum(map(blocks_of, self.unused)):
            before = (self.manager.num_free, self.cache.holders())
            with pytest.raises(OutOfBlocksError):
                self.cache.acquire(tokens, prefix_ids=prefix)
            assert (self.manager.num_free, self.cache.holders()) == before
            return
        self.forget(missing)
        self.unused.pop(content, None)
        unit = self.cache.acquire(tokens, prefix_ids=prefix)
        assert unit.ready == (content in self.ready)
        self.held.append(unit)

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, 99))
    def share(self, number: int) -> None:
        unit = self.held[number % len(self.held)]
        self.cache.share(unit)
        self.held.append(unit)

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, 99))
    def encode(self, number: int) -> None:
        unit = self.held[number % len(self.held)]
        unit.ready = True
        self.ready.add(content_of(unit))

    @precondition(lambda self: self.held)
    @rule(number=st.integers(0, 99))
    def release(self, number: int) -> None:
        unit = self.held.pop(number % len(self.held))
        self.cache.release(unit)
        if unit not in self.held:
            if self.keep_unused and content_of(unit) in self.ready:
                self.unused[content_of(unit)] = None
            else:
                self.ready.discard(content_of(unit))

    @rule(num_blocks=st.integers(-1, 6))
    def evict(self, num_blocks: int) -> None:
        assert self.cache.evict(num_blocks) == self.forget(num_blocks)

    @rule(count=st.integers(0, 3))
    def someone_else_takes_blocks(self, count: int) -> None:
        if count <= self.manager.num_free:
            self.others.append(self.manager.allocate(count))

    @precondition(lambda self: self.others)
    @rule()
    def someone_else_gives_blocks_back(self) -> None:
        self.manager.release(self.others.pop())

    @invariant()
    def cache_is_what_the_model_says(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.manager.check_integrity([*self.cache.holders(), *self.others])
        contents = {content_of(unit) for unit in self.held} | set(self.unused)
        assert len(self.cache.holders()) == len(contents)
        assert self.cache.num_cached_blocks == sum(map(blocks_of, self.unused))
        for unit in self.held:
            assert unit.references == self.held.count(unit)
            assert len(unit.table.blocks) == blocks_of(content_of(unit))
        assert len({content_of(unit): unit for unit in self.held}) == len(set(map(id, self.held)))


CacheMachine.TestCase.settings = examples(30, stateful_step_count=30)
TestCache = CacheMachine.TestCase
