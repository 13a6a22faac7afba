"""Writing a step's keys and values into the paged pool, with the rotary embedding of queries and keys on the way.

Owns: the kernel and its launchers. The pool is what attention reads, so a key that is rotated here is read and written
once instead of three times.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.tiles import next_power_of_two


@triton.jit
def _copy(source, target, source_stride, target_stride, HEADS: tl.constexpr, BEGIN: tl.constexpr, END: tl.constexpr,
          HEADS_PADDED: tl.constexpr, D_PADDED: tl.constexpr):  # fmt: skip
    """Columns BEGIN .. END of all heads of one token."""
    head, column = tl.arange(0, HEADS_PADDED)[:, None], BEGIN + tl.arange(0, D_PADDED)[None, :]
    mask = (head < HEADS) & (column < END)
    tl.store(target + head * target_stride + column, tl.load(source + head * source_stride + column, mask=mask), mask)


@triton.jit
def _rotate(source, target, cos, sin, source_stride, target_stride, HEADS: tl.constexpr, ROTARY: tl.constexpr,
            D: tl.constexpr, HEADS_PADDED: tl.constexpr, D_PADDED: tl.constexpr):  # fmt: skip
    """All heads of one token: the first ROTARY columns rotated, the rest copied; source and target may be the same."""
    half: tl.constexpr = ROTARY // 2
    head, column = tl.arange(0, HEADS_PADDED)[:, None], tl.arange(0, D_PADDED)[None, :]
    mask = (head < HEADS) & (column < half)
    first = tl.load(source + head * source_stride + column, mask=mask).to(tl.float32)
    second = tl.load(source + head * source_stride + column + half, mask=mask).to(tl.float32)
    c1, s1 = tl.load(cos + column, mask=column < half), tl.load(sin + column, mask=column < half)
    c2, s2 = tl.load(cos + column + half, mask=column < half), tl.load(sin + column + half, mask=column < half)
    dtype = target.dtype.element_ty
    tl.store(target + head * target_stride + column, (first * c1 - second * s1).to(dtype), mask)
    tl.store(target + head * target_stride + column + half, (second * c2 + first * s2).to(dtype), mask)
    if ROTARY < D:
        _copy(source, target, source_stride, target_stride, HEADS, ROTARY, D, HEADS_PADDED, D_PADDED)


@triton.jit
def _write_kernel(
    query, key, value, cos, sin, slots, pool_key, pool_value,
    query_stride_head, query_stride_token, key_stride_head, key_stride_token, value_stride_head, value_stride_token,
    cos_stride, sin_stride, pool_key_stride_slot, pool_key_stride_head, pool_value_stride_slot, pool_value_stride_head,
    Q_HEADS: tl.constexpr, HEADS: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, ROTARY: tl.constexpr,
    Q_HEADS_PADDED: tl.constexpr, HEADS_PADDED: tl.constexpr, D_PADDED: tl.constexpr, DV_PADDED: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token)
    if slot < 0:
        return
    k_from, k_to = key + token * key_stride_token, pool_key + slot * pool_key_stride_slot
    v_from, v_to = value + token * value_stride_token, pool_value + slot * pool_value_stride_slot
    _copy(v_from, v_to, value_stride_head, pool_value_stride_head, HEADS, 0, DV, HEADS_PADDED, DV_PADDED)
    if ROTARY == 0:
        _copy(k_from, k_to, key_stride_head, pool_key_stride_head, HEADS, 0, D, HEADS_PADDED, D_PADDED)
    else:
        q, c, s = query + token * query_stride_token, cos + token * cos_stride, sin + token * sin_stride
        _rotate(k_from, k_to, c, s, key_stride_head, pool_key_stride_head, HEADS, ROTARY, D, HEADS_PADDED, D_PADDED)
        _rotate(
            q, q, c, s, query_stride_head, query_stride_head, Q_HEADS, ROTARY, D, Q_HEADS_PADDED, D_PADDED
        )  # fmt: skip


def write_kv(key: Tensor, value: Tensor, slots: Tensor, pool_key: Tensor, pool_value: Tensor) -> None:
    """Copies key [Hkv, T, D] and value [Hkv, T, Dv] to slots int64 [T] of pool_key [slots, Hkv, D] and pool_value.

    One launch for both; a token whose slot is negative is written nowhere. Last dimensions dense, one dtype. Raises
    ValueError for shapes or dtypes that do not fit.
    """
    _launch(None, key, value, None, None, slots, pool_key, pool_value)


def rotate_and_write(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cos: Tensor,
    sin: Tensor,
    slots: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
) -> None:
    """As `write_kv`, with the rotary embedding (RoFormer, eq. 34) of query [Hq, T, D], in place, and of the keys.

    cos, sin float32 [T, R] with R <= D even: the first R columns are rotated in halves (column i with i + R / 2, as
    transformers' models have it), in float32, then rounded once; the others stay. Raises ValueError as `write_kv`.
    """
    if cos.shape != sin.shape or cos.dtype != torch.float32 or sin.dtype != torch.float32:
        raise ValueError(f"cos and sin must be float32 of one shape, got {tuple(cos.shape)}, {tuple(sin.shape)}")
    if cos.shape[0] != key.shape[1] or cos.shape[1] % 2 or not 0 < cos.shape[1] <= key.shape[2]:
        raise ValueError(f"cos of shape {tuple(cos.shape)} for keys of shape {tuple(key.shape)}")
    if query.shape[1:] != key.shape[1:] or query.dtype != key.dtype or query.stride(-1) != 1:
        raise ValueError(f"queries {tuple(query.shape)} {query.dtype} beside keys {tuple(key.shape)} {key.dtype}")
    _launch(query, key, value, cos, sin, slots, pool_key, pool_value)


def _launch(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    cos: Tensor | None,
    sin: Tensor | None,
    slots: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
) -> None:
    (heads, tokens, dim), value_dim = key.shape, value.shape[2]
    if value.shape[:2] != key.shape[:2] or pool_key.shape[1:] != (heads, dim) or slots.shape != (tokens,):
        raise ValueError(
            f"keys {tuple(key.shape)}, values {tuple(value.shape)}, {len(slots)} slots do not fit together"
        )
    if pool_value.shape[1:] != (heads, value_dim) or slots.dtype != torch.int64 or not slots.is_contiguous():
        raise ValueError(f"values {tuple(value.shape)} for a pool {tuple(pool_value.shape)}; slots are {slots.dtype}")
    if any(item.dtype != key.dtype or item.stride(-1) != 1 for item in (key, value, pool_key, pool_value)):
        raise ValueError("keys, values and pool must have one dtype and a dense last dimension")
    if not tokens:
        return
    query_heads, query_strides = (query.shape[0], query.stride()[:2]) if query is not None else (1, (0, 0))
    _write_kernel[(tokens,)](
        query, key, value, cos, sin, slots, pool_key, pool_value,
        *query_strides, *key.stride()[:2], *value.stride()[:2],
        cos.stride(0) if cos is not None else 0, sin.stride(0) if sin is not None else 0,
        *pool_key.stride()[:2], *pool_value.stride()[:2],
        Q_HEADS=query_heads, HEADS=heads, D=dim, DV=value_dim, ROTARY=cos.shape[1] if cos is not None else 0,
        Q_HEADS_PADDED=next_power_of_two(query_heads), HEADS_PADDED=next_power_of_two(heads),
        D_PADDED=next_power_of_two(dim), DV_PADDED=next_power_of_two(value_dim), num_warps=4,
    )  # fmt: skip
