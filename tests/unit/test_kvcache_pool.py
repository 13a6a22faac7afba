"""The pool's tensors: layout, block copies, swapping to the host and back, bit for bit."""

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ewe.engine.kvcache import pool as pool_module
from ewe.engine.kvcache.fp8 import FP8
from ewe.engine.kvcache.pool import KVPool, LayerShape, TokenStates

SHAPES = [LayerShape(2, 4, 3), LayerShape(1, 8, 8)]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(autouse=True)
def _needs_gpu(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")


def tensors(pool: KVPool) -> list[torch.Tensor]:
    """Everything that a pool holds."""
    scales = [tensor for tensor in (*pool.key_scales, *pool.value_scales) if tensor is not None]
    return [*pool.keys, *pool.values, *scales]


def random_pool(dtype: torch.dtype, device: str = "cpu") -> KVPool:
    """A pool of random bits, NaNs of all kinds among them; the null block zero."""
    pool = KVPool(SHAPES, num_blocks=6, block_size=4, dtype=dtype, device=device)
    generator = torch.Generator().manual_seed(0)
    for tensor in tensors(pool):
        noise = torch.randint(0, 256, (tensor.nbytes,), dtype=torch.uint8, generator=generator)
        tensor.copy_(noise.view(tensor.dtype).view(tensor.shape))
        tensor.view(torch.uint8).view(6, -1)[0] = 0
    return pool


def bits(pool: KVPool) -> list[torch.Tensor]:
    return [tensor.cpu().view(torch.uint8).view(6, -1).clone() for tensor in tensors(pool)]


def test_starts_zero_with_one_slot_per_token() -> None:
    pool = KVPool(SHAPES, num_blocks=6, block_size=4, dtype=torch.bfloat16, device="cpu")
    assert [tuple(tensor.shape) for tensor in pool.keys] == [(24, 2, 4), (24, 1, 8)]
    assert [tuple(tensor.shape) for tensor in pool.values] == [(24, 2, 3), (24, 1, 8)]
    assert all(tensor.dtype == torch.bfloat16 and not tensor.any() for tensor in (*pool.keys, *pool.values))


def test_on_a_cpu_memory_is_taken_when_it_is_written() -> None:
    process, size = psutil.Process(), 1 << 28
    before = process.memory_info().rss
    pool = KVPool([LayerShape(1, 512, 512)], size // 4096, 1, torch.float32, "cpu")
    assert process.memory_info().rss - before < size / 2
    for tensor in tensors(pool):
        tensor.fill_(1)
    assert process.memory_info().rss - before > size / 2


def test_in_fp8_every_token_and_head_has_a_scale() -> None:
    pool = KVPool(SHAPES, num_blocks=6, block_size=4, dtype=FP8, device="cpu")
    assert all(tensor.dtype == FP8 for tensor in (*pool.keys, *pool.values))
    for scales in (pool.key_scales, pool.value_scales):
        assert [(tuple(item.shape), item.dtype) for item in scales] == [
            ((24, 2), torch.float32),
            ((24, 1), torch.float32),
        ]
    assert not any(tensor.view(torch.uint8).any() for tensor in tensors(pool))
    # 2 x (4 + 3) + 1 x (8 + 8) numbers of one byte, and scales of four for 2 + 2 + 1 + 1 heads.
    assert KVPool.bytes_per_token(SHAPES, FP8) == 30 + 6 * 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, FP8])
def test_bytes_per_block_is_what_a_block_takes(dtype: torch.dtype) -> None:
    pool = KVPool(SHAPES, num_blocks=6, block_size=4, dtype=dtype, device="cpu")
    total = sum(tensor.nbytes for tensor in tensors(pool))
    assert KVPool.bytes_per_block(SHAPES, 4, dtype) * 6 == total


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, FP8])
@pytest.mark.parametrize("together", [1, 2, 3])
def test_swapping_out_and_in_keeps_every_bit(
    dtype: torch.dtype, device: str, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "_SWAP_BYTES", together * KVPool.bytes_per_block(SHAPES, 4, dtype))
    pool = random_pool(dtype, device)
    before = bits(pool)
    host = pool.read_blocks([3, 1, 4])
    assert all(tensor.device.type == "cpu" for tensor in host.tensors)
    assert all(tensor.is_pinned() == (device == "cuda") for tensor in host.tensors)
    assert host.num_bytes == 3 * KVPool.bytes_per_block(SHAPES, 4, dtype)
    pool.copy_blocks([(0, 1), (0, 3), (0, 4)])
    pool.write_blocks([5, 2, 1], host)
    for old, new in zip(before, bits(pool), strict=True):
        assert torch.equal(new[[5, 2, 1]], old[[3, 1, 4]])
        assert not new[[0, 3, 4]].any()


def test_host_blocks_do_not_follow_the_pool() -> None:
    pool = random_pool(torch.float32)
    host = pool.read_blocks([1])
    kept = host.tensors[0].clone()
    pool.copy_blocks([(0, 1)])
    assert torch.equal(host.tensors[0].view(torch.uint8), kept.view(torch.uint8))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, FP8])
def test_slots_are_read_and_written_bit_for_bit(dtype: torch.dtype, device: str) -> None:
    pool, other = random_pool(dtype, device), random_pool(dtype, device)
    source, target = np.array([5, 21, 9]), np.array([22, 4, 11])
    stored = pool.read_slots(source)
    assert stored.nbytes == 3 * KVPool.bytes_per_token(SHAPES, dtype)
    before = bits(other)
    other.write_slots(target, stored)
    for mine, theirs, old in zip(bits(pool), bits(other), before, strict=True):
        wanted, found, kept = (item.view(24, -1) for item in (mine, theirs, old))
        assert torch.equal(found[target], wanted[source])
        kept[target] = found[target]
        assert torch.equal(found, kept)
    with pytest.raises(ValueError, match="expected, got"):
        other.write_slots(target[:2], stored)
    with pytest.raises(ValueError, match="expected, got"):
        other.write_slots(target, stored.view(torch.int8))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, FP8])
@given(pairs=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=6))
def test_copies_act_as_if_done_one_after_the_other(
    dtype: torch.dtype, device: str, pairs: list[tuple[int, int]]
) -> None:
    pool = random_pool(dtype, device)
    expected = bits(pool)
    for source, destination in pairs:
        for tensor in expected:
            tensor[destination] = tensor[source].clone()
    pool.copy_blocks(pairs)
    assert all(torch.equal(old, new) for old, new in zip(expected, bits(pool), strict=True))


def test_an_empty_list_of_blocks_is_fine() -> None:
    pool = random_pool(torch.float32)
    before = bits(pool)
    host = pool.read_blocks([])
    assert host.num_bytes == 0
    pool.write_blocks([], host)
    pool.copy_blocks([])
    assert all(torch.equal(old, new) for old, new in zip(before, bits(pool), strict=True))


def test_refuses_to_write_the_null_block_or_outside_the_pool() -> None:
    pool = random_pool(torch.float32)
    host = pool.read_blocks([1])
    with pytest.raises(ValueError, match="null block"):
        pool.write_blocks([0], host)
    with pytest.raises(ValueError, match="null block"):
        pool.copy_blocks([(1, 0)])
    for blocks in ([6], [-1]):
        with pytest.raises(ValueError, match="outside the pool"):
            pool.write_blocks(blocks, host)
        with pytest.raises(ValueError, match="outside the pool"):
            pool.read_blocks(blocks)


def test_refuses_another_number_of_blocks() -> None:
    pool = random_pool(torch.float32)
    with pytest.raises(ValueError, match="1 blocks on the host, 2 to write"):
        pool.write_blocks([1, 2], pool.read_blocks([1]))


def test_refuses_a_model_without_layers() -> None:
    with pytest.raises(ValueError, match="at least one layer"):
        KVPool([], 6, 4, torch.float32, "cpu")


def test_what_is_kept_of_every_token_moves_with_its_block() -> None:
    kept = TokenStates("hidden", 5, torch.float32)
    pool = KVPool(SHAPES, 6, 4, torch.bfloat16, "cpu", kept)
    assert pool.states is not None
    pool.states[4:8] = torch.arange(20.0).view(4, 5)
    pool.copy_blocks([(1, 3)])
    host = pool.read_blocks([3])
    pool.copy_blocks([(0, 3)])
    assert not pool.states[12:16].any()
    pool.write_blocks([2], host)
    assert torch.equal(pool.states[8:12], pool.states[4:8])
    assert pool.read_slots(np.arange(4, 8)).nbytes == 4 * KVPool.bytes_per_token(SHAPES, torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float32, FP8])
def test_scaling_keys_changes_nothing_else(dtype: torch.dtype) -> None:
    pool = KVPool(SHAPES, 4, 4, dtype, "cpu")
    slots = np.array([5, 9])
    before = pool.read_slots(np.arange(4, 16))
    before = torch.randint(1, 100, before.shape, dtype=before.dtype)
    pool.write_slots(np.arange(4, 16), before)
    scaled = [item for item in (pool.keys if dtype != FP8 else pool.key_scales) if item is not None]
    expected = [item[slots] * 2 for item in scaled]
    pool.scale_keys(slots, 2.0)
    assert all(map(torch.equal, [item[slots] for item in scaled], expected))
    for item, values in zip(scaled, expected, strict=True):
        item[slots] = values / 2
    assert torch.equal(pool.read_slots(np.arange(4, 16)), before)
