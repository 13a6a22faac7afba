"""Keys and values written to the pool, bit for bit; rotated ones against float64."""

from __future__ import annotations

import pytest
import torch
from ewe_kernels.cache_write import rotate_and_write, write_kv
from ewe_kernels.references import rotated
from kernel_parts import PRECISIONS
from tolerances import ATTENTION

TOKENS, SLOTS = 4, 20


def tensors(device, dtype, dim=24, value_dim=16, heads=3, query_heads=6):
    torch.manual_seed(2)
    random = [torch.randn(TOKENS, n, d).to(device, dtype) for n, d in ((query_heads, dim), (heads, dim))]
    value = torch.randn(TOKENS, heads, value_dim).to(device, dtype)
    pool_key = torch.zeros(SLOTS, heads, dim, dtype=dtype, device=device)
    pool_value = torch.zeros(SLOTS, heads, value_dim, dtype=dtype, device=device)
    slots = torch.tensor([7, 19, 3, 8], device=device)
    query, key, value = (item.transpose(0, 1) for item in (*random, value))
    return query, key, value, slots, pool_key, pool_value


def elsewhere(slots):
    return [slot for slot in range(SLOTS) if slot not in slots.tolist()]


@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_copies_are_exact_and_nothing_else_changes(device, dtype):
    _, key, value, slots, pool_key, pool_value = tensors(device, dtype)
    write_kv(key, value, slots, pool_key, pool_value)
    for pool, written in ((pool_key, key), (pool_value, value)):
        assert torch.equal(pool[slots], written.transpose(0, 1))
        assert not pool[elsewhere(slots)].any()


@pytest.mark.parametrize("rotary", [24, 8])
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_queries_and_keys_are_rotated(device, dtype, rotary):
    query, key, value, slots, pool_key, pool_value = tensors(device, dtype)
    angles = torch.rand(TOKENS, rotary, device=device) * 6
    cos, sin = angles.cos(), angles.sin()
    expected = [rotated(item.cpu(), cos.cpu(), sin.cpu()) for item in (query, key)]
    rotate_and_write(query, key, value, cos, sin, slots, pool_key, pool_value)
    found = query, pool_key[slots].transpose(0, 1)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu().double(), other, atol=ATTENTION[dtype], rtol=ATTENTION[dtype])
    assert torch.equal(pool_value[slots], value.transpose(0, 1))
    assert not pool_key[elsewhere(slots)].any()


def test_what_does_not_fit_is_refused():
    query, key, value, slots, pool_key, pool_value = tensors("cpu", torch.float32)
    angles = torch.zeros(TOKENS, 24)
    with pytest.raises(ValueError, match="do not fit together"):
        write_kv(key, value, slots[:2], pool_key, pool_value)
    with pytest.raises(ValueError, match=r"slots are torch.int32"):
        write_kv(key, value, slots.int(), pool_key, pool_value)
    with pytest.raises(ValueError, match="one dtype"):
        write_kv(key, value.half(), slots, pool_key, pool_value)
    with pytest.raises(ValueError, match="cos of shape"):
        rotate_and_write(query, key, value, angles[:, :7], angles[:, :7], slots, pool_key, pool_value)
    with pytest.raises(ValueError, match="cos and sin"):
        rotate_and_write(query, key, value, angles.half(), angles, slots, pool_key, pool_value)
    with pytest.raises(ValueError, match="beside keys"):
        rotate_and_write(query[:, :2], key, value, angles, angles, slots, pool_key, pool_value)
