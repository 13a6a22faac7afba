"""The rotary embedding of a step's queries and keys, and the write of keys and values into the pool, in one launch.

What comes in is what the products of a layer gave; queries and keys may get an RMS norm over each head first. The pool
is what attention reads, so keys and values are written once and nowhere else.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.cache_write import as_stored, keep_heads
from ewe_kernels.checks import check_write
from ewe_kernels.tiles import next_power_of_two


@triton.jit
def _rotated(source, cos, sin, norm, eps, head, real, source_stride, ROTARY: tl.constexpr, D: tl.constexpr,
             D_PADDED: tl.constexpr):  # fmt: skip
    """Heads [rows, D_PADDED] of one token, normed and rotated in float32; the columns from ROTARY on stay."""
    half: tl.constexpr = ROTARY // 2
    column = tl.arange(0, D_PADDED)
    partner = tl.where(column < half, column + half, tl.where(column < ROTARY, column - half, column))
    mask = real[:, None] & (column < D)[None, :]
    base = source + head[:, None] * source_stride
    states = tl.load(base + column[None, :], mask=mask, other=0.0).to(tl.float32)
    partners = tl.load(base + partner[None, :], mask=mask, other=0.0).to(tl.float32)
    if norm is not None:
        inverse = tl.rsqrt(tl.sum(states * states, 1) / D + eps)[:, None]
        weight = tl.load(norm + column, mask=column < D, other=0.0).to(tl.float32)
        other_weight = tl.load(norm + partner, mask=column < D, other=0.0).to(tl.float32)
        states, partners = states * inverse * weight[None, :], partners * inverse * other_weight[None, :]
    c = tl.load(cos + column, mask=column < ROTARY, other=1.0).to(tl.float32)
    s = tl.load(sin + column, mask=column < ROTARY, other=0.0).to(tl.float32)
    return states * c[None, :] + partners * tl.where(column < half, -s, s)[None, :]


@triton.jit
def _rotary_write_kernel(
    query, key, value, cos, sin, query_norm, key_norm, slots, rotated, pool_key, pool_value, key_scales, value_scales,
    eps, query_stride_head, query_stride_token, key_stride_head, key_stride_token, value_stride_head,
    value_stride_token, cos_stride, sin_stride, pool_key_stride_slot, pool_key_stride_head, pool_value_stride_slot,
    pool_value_stride_head,
    HEADS: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, ROTARY: tl.constexpr,
    HEADS_PADDED: tl.constexpr, D_PADDED: tl.constexpr, DV_PADDED: tl.constexpr,
):  # fmt: skip
    # One program takes one key head of one token, with the HEADS query heads that share it.
    token, kv_head, num_kv_heads = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    slot = tl.load(slots + token)
    if slot < 0:
        return
    cos += token * cos_stride
    sin += token * sin_stride
    row = tl.arange(0, HEADS_PADDED)
    head, real = kv_head * HEADS + row, row < HEADS
    query += token * query_stride_token
    queries = _rotated(query, cos, sin, query_norm, eps, head, real, query_stride_head, ROTARY, D, D_PADDED)
    dtype: tl.constexpr = rotated.dtype.element_ty
    target = rotated + token * (num_kv_heads * HEADS * D)
    keep_heads(queries, target, None, None, head, real, D, dtype, D, HEADS_PADDED, D_PADDED)

    one = tl.arange(0, 1)
    head, real = kv_head + one, one < 1
    key += token * key_stride_token
    keys = _rotated(key, cos, sin, key_norm, eps, head, real, key_stride_head, ROTARY, D, D_PADDED)
    column = tl.arange(0, DV_PADDED)
    place = value + token * value_stride_token + head[:, None] * value_stride_head + column[None, :]
    values = tl.load(place, mask=(column < DV)[None, :], other=0.0).to(tl.float32)
    k_to, v_to = pool_key + slot * pool_key_stride_slot, pool_value + slot * pool_value_stride_slot
    at = slot * num_kv_heads + head
    keep_heads(keys, k_to, key_scales, at, head, real, pool_key_stride_head, dtype, D, 1, D_PADDED)
    keep_heads(values, v_to, value_scales, at, head, real, pool_value_stride_head, dtype, DV, 1, DV_PADDED)


def rotate_and_write(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cos: Tensor,
    sin: Tensor,
    slots: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
    key_scales: Tensor | None = None,
    value_scales: Tensor | None = None,
    query_norm: Tensor | None = None,
    key_norm: Tensor | None = None,
    eps: float = 0.0,
) -> Tensor:
    """The rotary embedding (RoFormer, eq. 34) of query [Hq, T, D], returned as [Hq, T, D]; key and value are written.

    key [Hkv, T, D] gets the embedding and goes, with value [Hkv, T, Dv], to slots int64 [T] of pool_key [slots, Hkv, D]
    and pool_value: as it is, or with key_scales and value_scales as `write_kv` does. cos, sin [T, R] of any float
    dtype, R <= D even: the first R columns are rotated in halves (column i with i + R / 2), in float32, then rounded
    once; the others stay. query_norm, key_norm [D]: each head is first divided by its root mean square (of D columns,
    eps added to the square) and multiplied by it. A token whose slot is negative is written nowhere, and its query is
    undefined. Last dimensions dense. Raises ValueError for shapes or dtypes that do not fit.
    """
    check_write(key, value, slots, pool_key, pool_value, key_scales, value_scales)
    (kv_heads, tokens, dim), value_dim = key.shape, value.shape[2]
    heads, rest = divmod(query.shape[0], kv_heads)
    if rest or not heads or query.shape[1:] != key.shape[1:] or query.dtype != key.dtype or query.stride(-1) != 1:
        raise ValueError(f"queries {tuple(query.shape)} {query.dtype} beside keys {tuple(key.shape)} {key.dtype}")
    if cos.shape != sin.shape or cos.shape[0] != tokens or cos.stride(-1) != 1 or sin.stride(-1) != 1:
        raise ValueError(f"cos and sin must be dense rows, one per token, got {tuple(cos.shape)}, {tuple(sin.shape)}")
    if cos.shape[1] % 2 or not 0 < cos.shape[1] <= dim:
        raise ValueError(f"cos of shape {tuple(cos.shape)} for keys of shape {tuple(key.shape)}")
    if any(norm is not None and (norm.shape != (dim,) or not norm.is_contiguous()) for norm in (query_norm, key_norm)):
        raise ValueError(f"norms must have {dim} weights, one per column of a head")
    rotated = query.new_empty(tokens, query.shape[0], dim)
    if tokens:
        _rotary_write_kernel[(tokens, kv_heads)](
            query, key, value, cos, sin, query_norm, key_norm, slots, rotated,
            as_stored(pool_key), as_stored(pool_value), key_scales, value_scales, eps,
            *query.stride()[:2], *key.stride()[:2], *value.stride()[:2], cos.stride(0), sin.stride(0),
            *pool_key.stride()[:2], *pool_value.stride()[:2],
            HEADS=heads, D=dim, DV=value_dim, ROTARY=cos.shape[1], HEADS_PADDED=next_power_of_two(heads),
            D_PADDED=next_power_of_two(dim), DV_PADDED=next_power_of_two(value_dim), num_warps=2,
        )  # fmt: skip
    return rotated.transpose(0, 1)
