"""Working memory: two lanes, first in, first out."""

import math

import pytest
from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.units.unit_cache import UnitCache
from ewe.engine.units.working_memory import MemoryUnit, WorkingMemory
from ewe.types import Lane, Passage

CACHE = UnitCache(BlockManager(num_blocks=100, block_size=4), keep_unused=True)
UNITS = [CACHE.acquire((number,)) for number in range(10)]
PASSAGES = [Passage(str(number), "It moved.") for number in range(10)]


def add(memory: WorkingMemory, number: int, lane: Lane, weight: float = 1.0) -> tuple[MemoryUnit, MemoryUnit | None]:
    return memory.add(UNITS[number], PASSAGES[number], weight, lane)


def keys(memory: WorkingMemory) -> list[int]:
    return [unit.encoded.token_ids[0] for unit in memory.units]


def test_retrieval_comes_before_verification_and_old_before_new() -> None:
    memory = WorkingMemory(2, 2)
    for number, lane in enumerate([Lane.VERIFICATION, Lane.RETRIEVAL, Lane.VERIFICATION, Lane.RETRIEVAL]):
        added, evicted = add(memory, number, lane, weight=0.5)
        assert (added.encoded, added.passage, added.weight) == (UNITS[number], PASSAGES[number], 0.5)
        assert (added.lane, added.unit_id, evicted) == (lane, number, None)
    assert keys(memory) == [1, 3, 0, 2]


def test_a_full_lane_gives_up_its_oldest_and_leaves_the_other_lane_alone() -> None:
    memory = WorkingMemory(2, 1)
    for number, lane in enumerate([Lane.RETRIEVAL, Lane.VERIFICATION, Lane.RETRIEVAL]):
        add(memory, number, lane)
    oldest = memory.units[0]
    _, evicted = add(memory, 3, Lane.RETRIEVAL)
    assert evicted is oldest
    assert keys(memory) == [2, 3, 1]


def test_by_score_a_full_lane_gives_up_the_lowest_and_of_equals_the_oldest() -> None:
    memory = WorkingMemory(2, 1, by_score=True)
    for number, score in enumerate([0.5, 0.2, 0.2, 0.1]):
        memory.add(UNITS[number], PASSAGES[number], 1.0, Lane.RETRIEVAL, score)
    assert keys(memory) == [0, 3]
    memory.add(UNITS[4], PASSAGES[4], 1.0, Lane.VERIFICATION)
    memory.add(UNITS[5], PASSAGES[5], 1.0, Lane.VERIFICATION)
    memory.add(UNITS[6], PASSAGES[6], 1.0, Lane.RETRIEVAL, 0.3)
    assert keys(memory) == [0, 6, 5]


def test_what_is_in_either_lane_is_contained_and_refused() -> None:
    memory = WorkingMemory(1, 1)
    add(memory, 1, Lane.VERIFICATION)
    assert memory.contains(UNITS[1].token_ids)
    assert not memory.contains(UNITS[2].token_ids)
    for lane in Lane:
        with pytest.raises(ValueError, match="already"):
            add(memory, 1, lane)
    assert keys(memory) == [1]


@pytest.mark.parametrize(
    ("lane", "expected"), [(Lane.RETRIEVAL, [1, 2, 0, 3, 4]), (Lane.VERIFICATION, [0, 1, 2, 3, 4])]
)
def test_renewing_makes_a_unit_the_newest_of_its_own_lane_only(lane: Lane, expected: list[int]) -> None:
    memory = WorkingMemory(3, 2)
    for number, its_lane in enumerate([Lane.RETRIEVAL] * 3 + [Lane.VERIFICATION] * 2):
        add(memory, number, its_lane)
    assert memory.renew(UNITS[0].token_ids, lane)
    assert keys(memory) == expected
    assert not memory.renew(UNITS[9].token_ids, lane)
    assert keys(memory) == expected


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_refuses_a_weight_without_a_logarithm(weight: float) -> None:
    memory = WorkingMemory(1, 1)
    with pytest.raises(ValueError, match="positive number"):
        add(memory, 1, Lane.RETRIEVAL, weight)
    assert memory.units == ()


@pytest.mark.parametrize(("capacity", "lane"), [((0, 1), Lane.RETRIEVAL), ((1, 0), Lane.VERIFICATION)])
def test_refuses_a_lane_without_room(capacity: tuple[int, int], lane: Lane) -> None:
    with pytest.raises(ValueError, match=f"the {lane} lane holds no units"):
        add(WorkingMemory(*capacity), 1, lane)


def test_refuses_negative_capacities() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        WorkingMemory(0, -1)


def test_a_snapshot_restored_elsewhere_leads_to_new_ids() -> None:
    memory, other = WorkingMemory(2, 2), WorkingMemory(2, 2)
    add(memory, 1, Lane.RETRIEVAL)
    add(memory, 2, Lane.VERIFICATION)
    other.restore(memory.units)
    assert other.units == memory.units
    added, _ = add(other, 3, Lane.RETRIEVAL)
    assert added.unit_id == 2
    assert keys(memory) == [1, 2]


@pytest.mark.parametrize("capacity", [(1, 2), (2, 0)])
def test_refuses_a_snapshot_that_does_not_fit(capacity: tuple[int, int]) -> None:
    memory, small = WorkingMemory(2, 2), WorkingMemory(*capacity)
    for number, lane in enumerate([Lane.RETRIEVAL, Lane.RETRIEVAL, Lane.VERIFICATION]):
        add(memory, number, lane)
    with pytest.raises(ValueError, match="snapshot"):
        small.restore(memory.units)
    assert small.units == ()


def test_what_passes_see_is_made_anew_only_for_other_units() -> None:
    memory = WorkingMemory(2, 0)
    for number in (1, 2):
        add(memory, number, Lane.RETRIEVAL, weight=0.5 * number)
    seen = memory.seen
    assert (seen.encoded, seen.weights) == ((UNITS[1], UNITS[2]), (0.5, 1.0))
    assert all(mine is unit.table.slots() for mine, unit in zip(seen.slots, seen.encoded, strict=True))
    assert memory.seen is seen
    add(memory, 3, Lane.RETRIEVAL)
    assert memory.seen.encoded == (UNITS[2], UNITS[3])


def test_clear_returns_everything() -> None:
    memory = WorkingMemory(1, 1)
    add(memory, 1, Lane.VERIFICATION)
    add(memory, 2, Lane.RETRIEVAL)
    assert [unit.encoded.token_ids[0] for unit in memory.clear()] == [2, 1]
    assert memory.units == ()
    assert not memory.contains(UNITS[1].token_ids)


def test_reference_counts_are_left_alone() -> None:
    before = [unit.references for unit in UNITS]
    memory = WorkingMemory(1, 1)
    for number in range(4):
        add(memory, number, Lane.RETRIEVAL)
    memory.restore(memory.units)
    memory.clear()
    assert [unit.references for unit in UNITS] == before


class LanesMachine(RuleBasedStateMachine):
    """Lanes against two plain lists, with snapshots taken and restored at any moment."""

    def __init__(self) -> None:
        super().__init__()
        self.lanes: dict[Lane, list[int]] = {lane: [] for lane in Lane}
        self.snapshots: list[tuple[tuple[MemoryUnit, ...], dict[Lane, list[int]]]] = []
        self.ids: set[int] = set()

    @initialize(retrieval=st.integers(0, 3), verification=st.integers(0, 3))
    def start(self, retrieval: int, verification: int) -> None:
        self.capacity = {Lane.RETRIEVAL: retrieval, Lane.VERIFICATION: verification}
        self.memory = WorkingMemory(retrieval, verification)

    @rule(number=st.integers(0, 9), lane=st.sampled_from(Lane))
    def add(self, number: int, lane: Lane) -> None:
        present = number in self.lanes[Lane.RETRIEVAL] + self.lanes[Lane.VERIFICATION]
        assert self.memory.contains(UNITS[number].token_ids) == present
        if present or not self.capacity[lane]:
            with pytest.raises(ValueError, match=r"already|no units"):
                add(self.memory, number, lane)
            return
        added, evicted = add(self.memory, number, lane)
        assert added.unit_id not in self.ids
        self.ids.add(added.unit_id)
        expected = self.lanes[lane].pop(0) if len(self.lanes[lane]) == self.capacity[lane] else None
        self.lanes[lane].append(number)
        assert (evicted.encoded.token_ids[0] if evicted else None) == expected

    @rule(number=st.integers(0, 9), lane=st.sampled_from(Lane))
    def renew(self, number: int, lane: Lane) -> None:
        present = any(number in numbers for numbers in self.lanes.values())
        assert self.memory.renew(UNITS[number].token_ids, lane) == present
        if number in self.lanes[lane]:
            self.lanes[lane].remove(number)
            self.lanes[lane].append(number)

    @rule()
    def snapshot(self) -> None:
        model = {lane: list(numbers) for lane, numbers in self.lanes.items()}
        self.snapshots.append((self.memory.units, model))

    @precondition(lambda self: self.snapshots)
    @rule(number=st.integers(0, 9))
    def restore(self, number: int) -> None:
        units, model = self.snapshots[number % len(self.snapshots)]
        self.memory.restore(units)
        assert self.memory.units == units
        self.lanes = {lane: list(numbers) for lane, numbers in model.items()}

    @rule()
    def clear(self) -> None:
        before = self.memory.units
        assert self.memory.clear() == before
        self.lanes = {lane: [] for lane in Lane}

    @invariant()
    def lanes_are_what_the_lists_hold(self) -> None:
        if hasattr(self, "memory"):
            assert keys(self.memory) == self.lanes[Lane.RETRIEVAL] + self.lanes[Lane.VERIFICATION]
            assert all(unit.encoded.token_ids[0] in self.lanes[unit.lane] for unit in self.memory.units)


LanesMachine.TestCase.settings = examples(30, stateful_step_count=30)
TestLanes = LanesMachine.TestCase
