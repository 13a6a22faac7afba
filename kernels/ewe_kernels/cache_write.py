"""Writing a step's keys and values, as they are, into the paged pool.

`rotary_write` writes keys that still need their rotary embedding.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.checks import check_write
from ewe_kernels.tiles import next_power_of_two


@triton.jit
def _copy(source, target, source_stride, target_stride, HEADS: tl.constexpr, D: tl.constexpr,
          HEADS_PADDED: tl.constexpr, D_PADDED: tl.constexpr):  # fmt: skip
    """All heads of one token."""
    head, column = tl.arange(0, HEADS_PADDED)[:, None], tl.arange(0, D_PADDED)[None, :]
    mask = (head < HEADS) & (column < D)
    tl.store(target + head * target_stride + column, tl.load(source + head * source_stride + column, mask=mask), mask)


@triton.jit
def _write_kernel(
    key, value, slots, pool_key, pool_value,
    key_stride_head, key_stride_token, value_stride_head, value_stride_token,
    pool_key_stride_slot, pool_key_stride_head, pool_value_stride_slot, pool_value_stride_head,
    HEADS: tl.constexpr, D: tl.constexpr, DV: tl.constexpr,
    HEADS_PADDED: tl.constexpr, D_PADDED: tl.constexpr, DV_PADDED: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token)
    if slot < 0:
        return
    k_from, k_to = key + token * key_stride_token, pool_key + slot * pool_key_stride_slot
    v_from, v_to = value + token * value_stride_token, pool_value + slot * pool_value_stride_slot
    _copy(k_from, k_to, key_stride_head, pool_key_stride_head, HEADS, D, HEADS_PADDED, D_PADDED)
    _copy(v_from, v_to, value_stride_head, pool_value_stride_head, HEADS, DV, HEADS_PADDED, DV_PADDED)


def write_kv(key: Tensor, value: Tensor, slots: Tensor, pool_key: Tensor, pool_value: Tensor) -> None:
    """Copies key [Hkv, T, D] and value [Hkv, T, Dv] to slots int64 [T] of pool_key [slots, Hkv, D] and pool_value.

    One launch for both; a token whose slot is negative is written nowhere. Last dimensions dense, one dtype. Raises
    ValueError for shapes or dtypes that do not fit.
    """
    check_write(key, value, slots, pool_key, pool_value)
    (heads, tokens, dim), value_dim = key.shape, value.shape[2]
    if not tokens:
        return
    _write_kernel[(tokens,)](
        key, value, slots, pool_key, pool_value,
        *key.stride()[:2], *value.stride()[:2], *pool_key.stride()[:2], *pool_value.stride()[:2],
        HEADS=heads, D=dim, DV=value_dim, HEADS_PADDED=next_power_of_two(heads),
        D_PADDED=next_power_of_two(dim), DV_PADDED=next_power_of_two(value_dim), num_warps=4,
    )  # fmt: skip
