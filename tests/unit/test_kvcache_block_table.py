"""Block tables: slots, copy on write, truncation; and the whole paged cache against plain lists."""

import numpy as np
import pytest
import torch
from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.block_table import BlockTable
from ewe.engine.kvcache.pool import HostBlocks, KVPool, LayerShape
from ewe.errors import OutOfBlocksError


def table_of(manager: BlockManager, length: int) -> BlockTable:
    table = BlockTable(manager)
    assert table.extend(length) == []
    return table


def test_slots_are_block_times_size_plus_offset() -> None:
    manager = BlockManager(num_blocks=8, block_size=4)
    other = table_of(manager, 1)
    table = table_of(manager, 5)
    other.extend(4)
    table.extend(4)
    assert (other.blocks, table.blocks) == ([1, 4], [2, 3, 5])
    assert table.slots().tolist() == [8, 9, 10, 11, 12, 13, 14, 15, 20]
    assert table.slots().dtype == np.int64
    assert BlockTable(manager).slots().tolist() == []


def test_fork_shares_and_the_first_writer_copies() -> None:
    manager = BlockManager(num_blocks=8, block_size=4)
    first = table_of(manager, 6)
    second = first.fork()
    assert second.slots().tolist() == first.slots().tolist()
    assert (first.blocks_needed(1), first.blocks_needed(3), first.blocks_needed(0)) == (1, 2, 0)
    assert second.extend(1) == [(2, 3)]
    assert (first.blocks, second.blocks) == ([1, 2], [1, 3])
    assert first.blocks_needed(1) == 0
    assert first.extend(1) == []
    manager.check_integrity([first.blocks, second.blocks])


def test_full_blocks_are_never_copied() -> None:
    manager = BlockManager(num_blocks=8, block_size=4)
    first = table_of(manager, 8)
    second = first.fork()
    assert second.extend(1) == []
    assert second.blocks == [1, 2, 3]


def test_extending_by_nothing_copies_nothing() -> None:
    manager = BlockManager(num_blocks=8, block_size=4)
    first = table_of(manager, 6)
    second = first.fork()
    assert second.extend(0) == []
    assert second.blocks == first.blocks


def test_truncating_into_a_shared_block_leaves_the_sharer_alone() -> None:
    manager = BlockManager(num_blocks=8, block_size=4)
    first = table_of(manager, 8)
    second = first.fork()
    second.truncate(5)
    assert second.blocks == [1, 2]
    assert second.blocks_needed(1) == 1
    assert second.extend(1) == [(2, 3)]
    assert first.slots().tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize(("length", "blocks"), [(9, 3), (8, 2), (5, 2), (4, 1), (1, 1), (0, 0)])
def test_truncate_releases_whole_blocks_only(length: int, blocks: int) -> None:
    manager = BlockManager(num_blocks=8, block_size=4)
    table = table_of(manager, 10)
    table.truncate(length)
    assert (table.length, len(table.blocks), manager.num_free) == (length, blocks, 7 - blocks)
    assert len(table.slots()) == length


@pytest.mark.parametrize("length", [-1, 4])
def test_truncate_refuses_impossible_lengths(length: int) -> None:
    table = table_of(BlockManager(num_blocks=8, block_size=4), 3)
    with pytest.raises(ValueError, match="cannot truncate"):
        table.truncate(length)


def test_refuses_a_negative_extension() -> None:
    table = table_of(BlockManager(num_blocks=8, block_size=4), 3)
    with pytest.raises(ValueError, match="cannot extend"):
        table.extend(-1)


def test_a_copy_on_write_that_finds_no_block_changes_nothing() -> None:
    manager = BlockManager(num_blocks=4, block_size=4)
    first = table_of(manager, 6)
    second = first.fork()
    manager.allocate(1)
    slots = second.slots()
    with pytest.raises(OutOfBlocksError):
        second.extend(1)
    assert (second.length, second.blocks, second.slots().tolist()) == (6, [1, 2], slots.tolist())
    assert manager.reference_count(2) == 2


def test_slots_cannot_be_written_to() -> None:
    table = table_of(BlockManager(num_blocks=8, block_size=4), 3)
    with pytest.raises(ValueError, match="read-only"):
        table.slots()[0] = 0


def test_slots_that_were_handed_out_stay_as_they_were() -> None:
    manager = BlockManager(num_blocks=9, block_size=4)
    table = table_of(manager, 10)
    before = table.slots()
    copy = before.tolist()
    table.truncate(6)
    assert table.extend_in_place()
    assert table.slots().tolist() == copy[:7]
    assert table.extend_in_place()
    assert not table.extend_in_place(), "the block is full"
    manager.allocate(1)
    table.extend(3)
    assert table.slots().tolist()[:8] == copy[:8]
    assert table.slots().tolist()[8:] != copy[8:]
    assert before.tolist() == copy


def test_no_token_goes_in_place_into_a_block_that_others_hold() -> None:
    manager = BlockManager(num_blocks=8, block_size=4)
    first = table_of(manager, 6)
    second = first.fork()
    assert not first.extend_in_place()
    assert not second.extend_in_place()
    assert (first.length, second.length) == (6, 6)


def test_appending_tokens_copies_the_slots_seldom() -> None:
    table = table_of(BlockManager(num_blocks=600, block_size=16), 1)
    buffers = []

    def append(count: int) -> None:
        for _ in range(count):
            table.extend(1)
            if not buffers or table.slots().base is not buffers[-1]:
                buffers.append(table.slots().base)

    append(8000)
    assert len(buffers) <= 10
    table.truncate(4000)
    append(1000)
    assert len(buffers) <= 11


NUM_BLOCKS, BLOCK_SIZE = 9, 4


class PagedCache(RuleBasedStateMachine):
    """Tables that are forked, extended, cut, swapped and freed must read back exactly what lists would hold.

    One step of an engine is imitated: tables are extended, cut and freed, then the copies are done, then the new
    tokens are written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[BlockTable] = []
        self.expected: list[list[int]] = []
        self.swapped: list[tuple[HostBlocks, list[int]]] = []
        self.views: list[tuple[np.ndarray, list[int]]] = []
        self.written = 0

    @initialize()
    def start(self) -> None:
        self.manager = BlockManager(NUM_BLOCKS, BLOCK_SIZE)
        self.pool = KVPool([LayerShape(1, 1, 1)], NUM_BLOCKS, BLOCK_SIZE, torch.int64, "cpu")

    def pick(self, number: int) -> int:
        return number % len(self.tables)

    def keep_view(self, table: BlockTable) -> None:
        view = table.slots()
        self.views.append((view, view.tolist()))

    @precondition(lambda self: len(self.tables) < 5)
    @rule()
    def add(self) -> None:
        self.tables.append(BlockTable(self.manager))
        self.expected.append([])

    @precondition(lambda self: 0 < len(self.tables) < 5)
    @rule(number=st.integers(0, 9))
    def fork(self, number: int) -> None:
        index = self.pick(number)
        free = self.manager.num_free
        self.tables.append(self.tables[index].fork())
        self.expected.append(list(self.expected[index]))
        assert self.manager.num_free == free

    @precondition(lambda self: self.tables)
    @rule(
        actions=st.lists(
            st.tuples(
                st.sampled_from(["extend", "extend", "extend", "truncate", "free"]),
                st.integers(0, 9),
                st.integers(0, 9),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def step(self, actions: list[tuple[str, int, int]]) -> None:
        copies: list[tuple[int, int]] = []
        for action, number, amount in actions:
            index = self.pick(number)
            table, values = self.tables[index], self.expected[index]
            self.keep_view(table)
            if action == "extend":
                copies += self.extend(table, values, amount)
            elif action == "truncate":
                length = min(amount, len(values))
                table.truncate(length)
                del values[length:]
            else:
                table.free()
                values.clear()
            self.keep_view(table)
        self.pool.copy_blocks(copies)
        for table, values in zip(self.tables, self.expected, strict=True):
            for position, value in enumerate(values):
                if value < 0:
                    self.written += 1
                    values[position] = self.written
                    slot = table.slots()[position]
                    self.pool.keys[0][slot] = self.written
                    self.pool.values[0][slot] = -self.written

    def extend(self, table: BlockTable, values: list[int], amount: int) -> list[tuple[int, int]]:
        """Extend table and model; the model marks the tokens that this step must write with -1."""
        needed, free = table.blocks_needed(amount), self.manager.num_free
        before = (table.length, list(table.blocks), table.slots().tolist())
        try:
            copies = table.extend(amount)
        except OutOfBlocksError:
            assert needed > free
            assert (table.length, table.blocks, table.slots().tolist()) == before
            assert self.manager.num_free == free
            return []
        assert free - self.manager.num_free == needed
        values += [-1] * amount
        return copies

    @precondition(lambda self: self.tables)
    @rule(number=st.integers(0, 9))
    def swap_out(self, number: int) -> None:
        index = self.pick(number)
        table = self.tables.pop(index)
        self.swapped.append((self.pool.read_blocks(table.blocks), self.expected.pop(index)))
        table.free()

    @precondition(lambda self: self.swapped and len(self.tables) < 5)
    @rule()
    def swap_in(self) -> None:
        host, values = self.swapped[0]
        table = BlockTable(self.manager)
        if table.blocks_needed(len(values)) > self.manager.num_free:
            return
        assert table.extend(len(values)) == []
        self.pool.write_blocks(table.blocks, host)
        self.tables.append(table)
        self.expected.append(values)
        del self.swapped[0]

    @invariant()
    def tables_read_what_lists_hold(self) -> None:
        for table, values in zip(self.tables, self.expected, strict=True):
            slots = torch.from_numpy(table.slots().copy())
            assert table.length == len(values)
            assert len(table.blocks) == -(-len(values) // BLOCK_SIZE)
            assert self.pool.keys[0][slots].flatten().tolist() == values
            assert self.pool.values[0][slots].flatten().tolist() == [-value for value in values]

    @invariant()
    def no_block_is_lost(self) -> None:
        if hasattr(self, "manager"):
            self.manager.check_integrity([table.blocks for table in self.tables])

    @invariant()
    def the_null_block_stays_zero(self) -> None:
        if hasattr(self, "pool"):
            assert not self.pool.keys[0][:BLOCK_SIZE].any()

    @invariant()
    def slots_handed_out_never_change(self) -> None:
        assert all(view.tolist() == values for view, values in self.views[-40:])


PagedCache.TestCase.settings = examples(25, 75, stateful_step_count=30)
TestPagedCache = PagedCache.TestCase
