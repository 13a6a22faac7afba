"""The block manager: what it hands out, takes back and refuses."""

import pytest

from ewe.engine.kvcache.block_manager import BlockManager
from ewe.errors import OutOfBlocksError


def test_hands_out_every_block_but_the_null_block() -> None:
    manager = BlockManager(num_blocks=6, block_size=4)
    blocks = manager.allocate(5)
    assert sorted(blocks) == [1, 2, 3, 4, 5]
    assert manager.num_free == 0
    manager.check_integrity([blocks])


def test_takes_nothing_when_short() -> None:
    manager = BlockManager(num_blocks=4, block_size=4)
    manager.allocate(2)
    with pytest.raises(OutOfBlocksError, match="2 blocks needed, 1 of 3 free"):
        manager.allocate(2)
    assert manager.num_free == 1
    assert manager.allocate(1)


def test_frees_a_block_with_its_last_reference() -> None:
    manager = BlockManager(num_blocks=3, block_size=4)
    [block] = manager.allocate(1)
    manager.share([block, block])
    assert manager.reference_count(block) == 3
    manager.release([block, block])
    assert (manager.reference_count(block), manager.num_free) == (1, 1)
    manager.release([block])
    assert (manager.reference_count(block), manager.num_free) == (0, 2)


@pytest.mark.parametrize("blocks", [[2], [0], [1, 1], [1, 2]], ids=["free", "null", "too often", "one of them free"])
def test_refuses_to_release_what_is_not_held_and_changes_nothing(blocks: list[int]) -> None:
    manager = BlockManager(num_blocks=3, block_size=4)
    assert manager.allocate(1) == [1]
    with pytest.raises(ValueError, match="released more often"):
        manager.release(blocks)
    manager.check_integrity([[1]])


def test_refuses_to_share_what_is_not_held_and_changes_nothing() -> None:
    manager = BlockManager(num_blocks=3, block_size=4)
    manager.allocate(1)
    for blocks in ([1, 2], [0]):
        with pytest.raises(ValueError, match="cannot be shared"):
            manager.share(blocks)
    manager.check_integrity([[1]])


@pytest.mark.parametrize("block", [-1, 3])
def test_knows_no_blocks_outside_the_pool(block: int) -> None:
    manager = BlockManager(num_blocks=3, block_size=4)
    manager.allocate(2)
    for method in (manager.reference_count, lambda b: manager.share([b]), lambda b: manager.release([b])):
        with pytest.raises(ValueError, match="no block"):
            method(block)


@pytest.mark.parametrize(("num_blocks", "block_size"), [(1, 4), (0, 4), (4, 0)])
def test_refuses_an_empty_pool(num_blocks: int, block_size: int) -> None:
    with pytest.raises(ValueError, match="at least"):
        BlockManager(num_blocks, block_size)


@pytest.mark.parametrize(
    "holders",
    [[], [[1]], [[1, 2], [1]], [[1, 2, 2]], [[1, 2, 3]], [[1, 2, 0]]],
    ids=["leak", "one leaked", "uncounted holder", "mentioned twice", "holds a free block", "holds the null block"],
)
def test_integrity_check_sees_every_kind_of_damage(holders: list[list[int]]) -> None:
    manager = BlockManager(num_blocks=5, block_size=4)
    manager.allocate(2)
    manager.check_integrity([[1], [2]])
    with pytest.raises(AssertionError):
        manager.check_integrity(holders)


def test_integrity_check_sees_a_damaged_free_list() -> None:
    manager = BlockManager(num_blocks=5, block_size=4)
    manager._free.append(manager._free[0])
    with pytest.raises(AssertionError, match="free list"):
        manager.check_integrity([])
    manager._free = [0, 1, 2, 3]
    with pytest.raises(AssertionError, match="free list"):
        manager.check_integrity([])
