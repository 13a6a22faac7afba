"""RMS norms of a step's hidden states, with the sum that comes before them, in one launch.

A row is read once and stays in registers.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.tiles import next_power_of_two

# Numbers per warp: one wide load per thread and two more.
_PER_WARP = 512
_MOST_WARPS = 16


@triton.jit
def _normed(states, factors, column, mask, eps, SIZE: tl.constexpr):
    inverse = tl.rsqrt(tl.sum(states * states, 0) / SIZE + eps)
    return states * inverse * tl.load(factors + column, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _norm_kernel(
    states, delta, delta_factors, factors, output, eps, states_stride, delta_stride, SIZE: tl.constexpr,
    SIZE_PADDED: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, SIZE_PADDED)
    mask = column < SIZE
    place = states + row * states_stride + column
    x = tl.load(place, mask=mask, other=0.0).to(tl.float32)
    if delta is not None:
        change = tl.load(delta + row * delta_stride + column, mask=mask, other=0.0).to(tl.float32)
        if delta_factors is not None:
            change = _normed(change, delta_factors, column, mask, eps, SIZE)
        x += change
        tl.store(place, x.to(states.dtype.element_ty), mask=mask)
    if factors is not None:
        normed = _normed(x, factors, column, mask, eps, SIZE)
        tl.store(output + row * SIZE + column, normed.to(output.dtype.element_ty), mask=mask)


def rms_norm(states: Tensor, scale: Tensor, eps: float) -> Tensor:
    """states / sqrt(mean(states^2) + eps) * scale per row: [T, n] in the dtype of states [T, n], summed in float32.

    scale: [n] of any float dtype (RMSNorm, arXiv 1910.07467, eq. 4). Raises ValueError for shapes that do not fit.
    """
    _check(states, scale)
    output = states.new_empty(states.shape)
    _launch(states, None, None, scale, output, eps)
    return output


def add_rms_norm(states: Tensor, delta: Tensor, scale: Tensor, eps: float, delta_scale: Tensor | None = None) -> Tensor:
    """Adds delta [T, n], in place, to states [T, n], and returns `rms_norm` of the sum.

    delta_scale [n]: delta is itself normed first, with this scale and the same eps. The sum is normed before it is
    rounded. Raises ValueError as `rms_norm`.
    """
    _check(states, scale, delta_scale, delta)
    output = states.new_empty(states.shape)
    _launch(states, delta, delta_scale, scale, output, eps)
    return output


def add_normed(states: Tensor, delta: Tensor, delta_scale: Tensor, eps: float) -> None:
    """Adds `rms_norm` of delta [T, n] to states [T, n] in place. Raises ValueError as `rms_norm`."""
    _check(states, delta_scale, None, delta)
    _launch(states, delta, delta_scale, None, None, eps)


def _launch(
    states: Tensor,
    delta: Tensor | None,
    delta_scale: Tensor | None,
    scale: Tensor | None,
    output: Tensor | None,
    eps: float,
) -> None:
    rows, size = states.shape
    if not rows:
        return
    padded = next_power_of_two(size)
    _norm_kernel[(rows,)](
        states, delta, delta_scale, scale, output, eps, states.stride(0), delta.stride(0) if delta is not None else 0,
        SIZE=size, SIZE_PADDED=padded, num_warps=max(1, min(_MOST_WARPS, padded // _PER_WARP)),
    )  # fmt: skip


def _check(states: Tensor, scale: Tensor, delta_scale: Tensor | None = None, delta: Tensor | None = None) -> None:
    if states.dim() != 2 or states.stride(1) != 1:
        raise ValueError(f"states must be dense rows, got {tuple(states.shape)}")
    if delta is not None and (delta.shape != states.shape or delta.stride(1) != 1 or delta.dtype != states.dtype):
        raise ValueError(f"{tuple(delta.shape)} {delta.dtype} to be added to {tuple(states.shape)} {states.dtype}")
    for item in (scale, delta_scale):
        if item is not None and (item.shape != states.shape[1:] or not item.is_contiguous()):
            raise ValueError(f"a scale of shape {tuple(item.shape)} for states of shape {tuple(states.shape)}")
