"""What the launchers refuse.

None of them waits for the device, so indices are not looked into.
"""

from __future__ import annotations

import torch
from torch import Tensor


def check_attention(
    query: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
    key_scales: Tensor | None,
    value_scales: Tensor | None,
    scale: float,
) -> int:
    """Query heads per key head; raises ValueError if queries and pool do not fit together, or the scale is not over 0.

    The kernels take the largest score before they scale it.
    """
    if not scale > 0:
        raise ValueError(f"the scale of the logits must be over 0, got {scale}")
    heads, rest = divmod(query.shape[0], pool_key.shape[1])
    if rest or not heads or pool_key.shape[:2] != pool_value.shape[:2] or query.shape[2] != pool_key.shape[2]:
        shapes = ", ".join(str(tuple(item.shape)) for item in (query, pool_key, pool_value))
        raise ValueError(f"queries, keys and values do not fit together: {shapes}")
    stored = query.dtype if key_scales is None else torch.float8_e4m3fn
    if not stored == pool_key.dtype == pool_value.dtype:
        raise ValueError(f"queries are {query.dtype}, keys {pool_key.dtype}, values {pool_value.dtype}; all must agree")
    if any(item.stride(-1) != 1 for item in (query, pool_key, pool_value)):
        raise ValueError("the last dimension of queries, keys and values must be dense")
    check_scales(pool_key, key_scales, value_scales)
    return heads


def check_scales(pool_key: Tensor, key_scales: Tensor | None, value_scales: Tensor | None) -> None:
    """Raises ValueError unless there are none, or both are dense float32 [slots, Hkv]."""
    if key_scales is None and value_scales is None:
        return
    for scales in (key_scales, value_scales):
        if scales is None or scales.dtype != torch.float32 or not scales.is_contiguous():
            raise ValueError("scales of keys and of values must be given together, dense and float32")
        if scales.shape != pool_key.shape[:2]:
            raise ValueError(f"scales of shape {tuple(scales.shape)} for keys of shape {tuple(pool_key.shape)}")


def check_indices(**tensors: tuple[Tensor, int | None]) -> None:
    """Raises ValueError unless each is a dense int32 tensor [n], or [n, width] where a width is given."""
    for name, (tensor, width) in tensors.items():
        fits = tensor.dim() == 1 if width is None else tensor.dim() == 2 and tensor.shape[1] == width
        if not fits or tensor.dtype != torch.int32 or not tensor.is_contiguous():
            raise ValueError(f"{name} must be dense int32, got {tensor.dtype} {tuple(tensor.shape)}")


def check_write(
    key: Tensor,
    value: Tensor,
    slots: Tensor,
    pool_key: Tensor,
    pool_value: Tensor,
    key_scales: Tensor | None = None,
    value_scales: Tensor | None = None,
) -> None:
    """Raises ValueError if keys [Hkv, T, D], values [Hkv, T, Dv], slots int64 [T] and the pool do not fit together.

    Without scales the pool has the keys' dtype, with scales it is float8_e4m3fn.
    """
    (heads, tokens, dim), value_dim = key.shape, value.shape[2]
    if value.shape[:2] != key.shape[:2] or slots.shape != (tokens,) or slots.dtype != torch.int64:
        raise ValueError(
            f"keys {tuple(key.shape)}, values {tuple(value.shape)}, {len(slots)} slots of {slots.dtype} do not fit"
        )
    if pool_key.shape[1:] != (heads, dim) or pool_value.shape != (*pool_key.shape[:2], value_dim):
        raise ValueError(f"a pool of {tuple(pool_key.shape)}, {tuple(pool_value.shape)} for keys {tuple(key.shape)}")
    stored = key.dtype if key_scales is None else torch.float8_e4m3fn
    if not stored == pool_key.dtype == pool_value.dtype or key.dtype != value.dtype:
        name = str(stored).removeprefix("torch.")
        raise ValueError(f"the pool must be {name}, got {pool_key.dtype}, for keys of {key.dtype}; values likewise")
    if not slots.is_contiguous() or any(item.stride(-1) != 1 for item in (key, value, pool_key, pool_value)):
        raise ValueError("slots and the last dimension of keys, values and pool must be dense")
    check_scales(pool_key, key_scales, value_scales)


def check_logits(logits: Tensor) -> None:
    """Raises ValueError unless they are float32 [rows, vocab] with a dense last dimension."""
    if logits.dim() != 2 or logits.dtype != torch.float32 or logits.stride(1) != 1 or not logits.shape[1]:
        raise ValueError(f"logits must be float32 [rows, vocab], got {logits.dtype} {tuple(logits.shape)}")


def check_dense(shape: tuple[int, ...], dtype: torch.dtype, *tensors: Tensor) -> None:
    """Raises ValueError unless each is dense and has this shape and dtype."""
    for tensor in tensors:
        if tensor.shape != shape or tensor.dtype != dtype or not tensor.is_contiguous():
            raise ValueError(f"expected a dense {dtype} {shape}, got {tensor.dtype} {tuple(tensor.shape)}")
