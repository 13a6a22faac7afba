"""The gated activation of a feed-forward layer, activation(gate) * up, in one launch."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

from typing import Literal

import triton
import triton.language as tl
from torch import Tensor

Activation = Literal["silu", "gelu_tanh"]
_BLOCK = 1024
_ROOT_2_OVER_PI = tl.constexpr(0.7978845608028654)


@triton.jit
def activated(g, SILU: tl.constexpr):
    """SiLU, or the tanh form of GELU, of float32 numbers."""
    # gelu_tanh is x * sigmoid(2 z) too, since (1 + tanh z) / 2 = sigmoid(2 z).
    z = g if SILU else 2.0 * _ROOT_2_OVER_PI * (g + 0.044715 * g * g * g)
    return g / (1.0 + tl.exp(-z))


@triton.jit
def _gated_kernel(gate, up, output, size, gate_stride, up_stride, SILU: tl.constexpr, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < size
    g = tl.load(gate + row * gate_stride + column, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up + row * up_stride + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(output + row * size + column, (activated(g, SILU) * u).to(output.dtype.element_ty), mask=mask)


def gated(gate: Tensor, up: Tensor, activation: Activation) -> Tensor:
    """activation(gate) * up of rows [T, n], dense, in their dtype; computed in float32, rounded once.

    "silu" is x * sigmoid(x) (SwiGLU, arXiv 2002.05202), "gelu_tanh" the tanh form of GELU (arXiv 1606.08415). Rows may
    lie apart. Raises ValueError for shapes or dtypes that do not fit.
    """
    if gate.dim() != 2 or gate.shape != up.shape or gate.dtype != up.dtype or gate.stride(1) != 1 or up.stride(1) != 1:
        raise ValueError(f"gate {tuple(gate.shape)} {gate.dtype} beside up {tuple(up.shape)} {up.dtype}")
    rows, size = gate.shape
    output = gate.new_empty(rows, size)
    if rows:
        _gated_kernel[(rows, triton.cdiv(size, _BLOCK))](
            gate, up, output, size, gate.stride(0), up.stride(0), SILU=activation == "silu", BLOCK=_BLOCK, num_warps=4
        )
    return output
