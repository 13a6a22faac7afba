"""Keys and values written to the pool, bit for bit."""

from __future__ import annotations

import pytest
import torch
from ewe_kernels.cache_write import write_kv
from kernel_parts import PRECISIONS

TOKENS, SLOTS = 4, 20


def tensors(device, dtype, dim=24, value_dim=16, heads=3):
    torch.manual_seed(2)
    key, value = (torch.randn(TOKENS, heads, width).to(device, dtype).transpose(0, 1) for width in (dim, value_dim))
    pool_key = torch.zeros(SLOTS, heads, dim, dtype=dtype, device=device)
    pool_value = torch.zeros(SLOTS, heads, value_dim, dtype=dtype, device=device)
    return key, value, torch.tensor([7, 19, 3, 8], device=device), pool_key, pool_value


def elsewhere(slots):
    return [slot for slot in range(SLOTS) if slot not in slots.tolist()]


@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_copies_are_exact_and_nothing_else_changes(device, dtype):
    key, value, slots, pool_key, pool_value = tensors(device, dtype)
    write_kv(key, value, slots, pool_key, pool_value)
    for pool, written in ((pool_key, key), (pool_value, value)):
        assert torch.equal(pool[slots], written.transpose(0, 1))
        assert not pool[elsewhere(slots)].any()


def test_what_does_not_fit_is_refused():
    key, value, slots, pool_key, pool_value = tensors("cpu", torch.float32)
    with pytest.raises(ValueError, match="do not fit"):
        write_kv(key, value, slots[:2], pool_key, pool_value)
    with pytest.raises(ValueError, match=r"slots of torch.int32"):
        write_kv(key, value, slots.int(), pool_key, pool_value)
    with pytest.raises(ValueError, match="pool must be"):
        write_kv(key.half(), value.half(), slots, pool_key, pool_value)
    with pytest.raises(ValueError, match="must be dense"):
        write_kv(key.transpose(1, 2).contiguous().transpose(1, 2), value, slots, pool_key, pool_value)
