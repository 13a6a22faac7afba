"""Writing a step's keys and values into the paged pool: as they are, or as e4m3 with a scale per token and head.

Such a scale makes the largest number of a head 448, the largest of e4m3. It depends on its token alone, so tokens can
follow and be dropped without touching what was written before. `rotary_write` writes keys that still need their rotary
embedding.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.checks import check_write
from ewe_kernels.device import E4M3_LARGEST
from ewe_kernels.tiles import next_power_of_two

# Keeps the scale of an all-zero head from being zero, which would be divided by.
_LEAST = tl.constexpr(2.0**-100)


@triton.jit
def to_e4m3(numbers):
    """The codes (uint8) of float32 numbers: to the nearest, ties to even, at most 448.

    In integers, because Triton's interpreter rounds its own conversion wrongly where a carry reaches the exponent.
    """
    size = tl.abs(numbers)
    bits = size.to(tl.uint32, bitcast=True)
    # The exponent's bias goes from 127 to 7; three bits of the mantissa stay, and a carry may raise the exponent.
    normal = (bits + 0x7FFFF + ((bits >> 20) & 1) >> 20) - (120 << 3)
    # Below 2^-6 numbers are multiples of 2^-9, which is what is left of them in float32 beside 2^14.
    beside = (size + 16384.0).to(tl.uint32, bitcast=True) & 0x7FFFFF
    code = tl.minimum(tl.where(size < 0.015625, beside, normal), 0x7E)
    sign = numbers.to(tl.uint32, bitcast=True) >> 31
    return (code | (sign << 7)).to(tl.uint8)


@triton.jit
def _quantised(states, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The codes of float32 states [ROWS, COLUMNS] and each row's scale; a row that is not all finite gets NaN."""
    # The sum is 0, or NaN if anything is not finite.
    scale = tl.div_rn(tl.maximum(tl.max(tl.abs(states), 1), _LEAST), E4M3_LARGEST) + tl.sum(states * 0.0, 1)
    return to_e4m3(tl.div_rn(states, tl.broadcast_to(scale[:, None], [ROWS, COLUMNS]))), scale


@triton.jit
def keep_heads(states, target, scales, scale_at, head, real, target_stride, DTYPE: tl.constexpr, D: tl.constexpr,
               ROWS: tl.constexpr, D_PADDED: tl.constexpr):  # fmt: skip
    """Writes heads [ROWS, D_PADDED] of one token, rounded to DTYPE first; where there are scales, as e4m3."""
    column = tl.arange(0, D_PADDED)
    rounded, place = states.to(DTYPE), target + head[:, None] * target_stride + column[None, :]
    mask = real[:, None] & (column < D)[None, :]
    if scales is None:
        tl.store(place, rounded, mask=mask)
    else:
        codes, scale = _quantised(rounded.to(tl.float32), ROWS, D_PADDED)
        tl.store(scales + scale_at, scale, mask=real)
        tl.store(place, codes, mask=mask)


@triton.jit
def _write(source, target, scales, slot, source_stride, target_stride, HEADS: tl.constexpr, D: tl.constexpr,
           HEADS_PADDED: tl.constexpr, D_PADDED: tl.constexpr):  # fmt: skip
    """All heads of one token."""
    head, column = tl.arange(0, HEADS_PADDED), tl.arange(0, D_PADDED)[None, :]
    real = head < HEADS
    states = tl.load(source + head[:, None] * source_stride + column, mask=real[:, None] & (column < D), other=0.0)
    dtype: tl.constexpr = source.dtype.element_ty
    keep_heads(states, target, scales, slot * HEADS + head, head, real, target_stride, dtype, D, HEADS_PADDED, D_PADDED)


@triton.jit
def _write_kernel(
    key, value, slots, pool_key, pool_value, key_scales, value_scales,
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
    _write(k_from, k_to, key_scales, slot, key_stride_head, pool_key_stride_head, HEADS, D, HEADS_PADDED, D_PADDED)
    _write(v_from, v_to, value_scales, slot, value_stride_head, pool_value_stride_head, HEADS, DV, HEADS_PADDED,
           DV_PADDED)  # fmt: skip


def as_stored(pool: Tensor) -> Tensor:
    """The pool as kernels write it: bytes for e4m3."""
    return pool.view(torch.uint8) if pool.dtype == torch.float8_e4m3fn else pool


def write_kv(
    key: Tensor,
    value: Tensor,
    slots: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
    key_scales: Tensor | None = None,
    value_scales: Tensor | None = None,
) -> None:
    """Writes key [Hkv, T, D] and value [Hkv, T, Dv] to slots int64 [T] of pool_key [slots, Hkv, D] and pool_value.

    One launch for both; a token whose slot is negative is written nowhere. Last dimensions dense. Without scales all
    have one dtype. With them, float32 [slots, Hkv], dense, the pool is e4m3: a scale is the largest absolute number of
    its head divided by 448, and what is not finite makes its head of that token NaN. Raises ValueError for shapes or
    dtypes that do not fit.
    """
    check_write(key, value, slots, pool_key, pool_value, key_scales, value_scales)
    (heads, tokens, dim), value_dim = key.shape, value.shape[2]
    if not tokens:
        return
    _write_kernel[(tokens,)](
        key, value, slots, as_stored(pool_key), as_stored(pool_value), key_scales, value_scales,
        *key.stride()[:2], *value.stride()[:2], *pool_key.stride()[:2], *pool_value.stride()[:2],
        HEADS=heads, D=dim, DV=value_dim, HEADS_PADDED=next_power_of_two(heads),
        D_PADDED=next_power_of_two(dim), DV_PADDED=next_power_of_two(value_dim), num_warps=4,
    )  # fmt: skip
