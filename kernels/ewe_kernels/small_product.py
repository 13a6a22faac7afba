"""Products of a few rows with a matrix in 8 bits, which is read once, as bytes.

Decoding is bound by reading weights: converting the matrix first would read it, write it in 16 bits and read it again.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.tiles import next_power_of_two

# More rows than these are for libraries: the product then costs more than the conversion.
MOST_ROWS = 64
# The least that the tensor cores take.
_LEAST_ROWS = 16
# Columns in one step, and the bytes of the rows' part of them: several steps must fit into 99 KiB of shared memory.
_MOST_INNER = 256
_STEP_BYTES = 16384
# Matrices with fewer outputs get narrower tiles, so that there are enough programs to ask for bytes.
_FEW_OUTPUTS = 8192


@triton.jit
def _product_kernel(
    inputs, weight, row_scales, bias, output, num_rows, num_outputs, size, stride_row,
    ROWS: tl.constexpr, OUTPUTS: tl.constexpr, INNER: tl.constexpr, WHOLE: tl.constexpr, BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    # The matrix is the left side, whose tiles may be as narrow as 16; the rows are few.
    place = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    row, column = tl.arange(0, ROWS), tl.arange(0, INNER)
    is_output, is_row = place < num_outputs, row < num_rows
    weights = weight + place.to(tl.int64)[:, None] * size + column[None, :]
    states = inputs + row[None, :] * stride_row + column[:, None]
    acc = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for start in range(0, size, INNER):
        if WHOLE:
            w = tl.load(weights + start, mask=is_output[:, None], other=0.0)
            x = tl.load(states + start, mask=is_row[None, :], other=0.0)
        else:
            here = column < size - start
            w = tl.load(weights + start, mask=is_output[:, None] & here[None, :], other=0.0)
            x = tl.load(states + start, mask=is_row[None, :] & here[:, None], other=0.0)
        acc += tl.dot(w.to(x.dtype), x, input_precision=PRECISION)
    acc *= tl.load(row_scales + place, mask=is_output, other=0.0)[:, None]
    if BIAS:
        acc += tl.load(bias + place, mask=is_output, other=0.0).to(tl.float32)[:, None]
    target = output + row[None, :] * num_outputs + place[:, None]
    tl.store(target, acc.to(output.dtype.element_ty), mask=is_output[:, None] & is_row[None, :])


def tile(num_rows: int, num_outputs: int, itemsize: int) -> tuple[dict[str, int], int, int]:
    """Sizes, warps and stages of the kernel for so many rows, with numbers of `itemsize` bytes, and outputs."""
    narrow, rows = num_outputs <= _FEW_OUTPUTS, max(_LEAST_ROWS, next_power_of_two(num_rows))
    inner = min(_MOST_INNER, _STEP_BYTES // (rows * itemsize))
    sizes = {"ROWS": rows, "OUTPUTS": 16 if narrow else 32, "INNER": inner}
    return sizes, 2 if narrow else 4, 4 if rows * itemsize <= 32 else 3


def multiply(inputs: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """scale * (weight inputs[t]) + bias per row t: [T, out] in the dtype of inputs [T, in], summed in float32.

    T from 1 to MOST_ROWS; weight: int8 or float8_e4m3fn [out, in], dense; scale: float32 [out]; bias: [out] or None.
    The last dimension of inputs is dense. Raises ValueError for shapes or dtypes that do not fit.
    """
    _check(inputs, weight, scale, bias)
    num_rows, size = inputs.shape
    num_outputs = weight.shape[0]
    output = inputs.new_empty(num_rows, num_outputs)
    sizes, warps, stages = tile(num_rows, num_outputs, inputs.element_size())
    _product_kernel[(triton.cdiv(num_outputs, sizes["OUTPUTS"]),)](
        inputs, weight, scale, bias, output, num_rows, num_outputs, size, inputs.stride(0),
        **sizes, WHOLE=size % sizes["INNER"] == 0, BIAS=bias is not None,
        PRECISION="ieee" if inputs.dtype == torch.float32 else "tf32", num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return output


def _check(inputs: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None) -> None:
    if inputs.dim() != 2 or not 1 <= inputs.shape[0] <= MOST_ROWS or inputs.stride(1) != 1:
        raise ValueError(f"inputs must be 1 to {MOST_ROWS} dense rows, got {tuple(inputs.shape)}")
    if weight.dtype not in (torch.int8, torch.float8_e4m3fn) or not weight.is_contiguous():
        raise ValueError(f"the matrix must be dense int8 or float8_e4m3fn, got {weight.dtype}")
    if weight.dim() != 2 or weight.shape[1] != inputs.shape[1]:
        raise ValueError(f"a matrix of shape {tuple(weight.shape)} for inputs of shape {tuple(inputs.shape)}")
    if scale.dtype != torch.float32 or scale.shape != weight.shape[:1] or not scale.is_contiguous():
        raise ValueError(f"scales must be dense float32 [{weight.shape[0]}], got {scale.dtype} {tuple(scale.shape)}")
    if bias is not None and (bias.shape != weight.shape[:1] or not bias.is_contiguous()):
        raise ValueError(f"a bias of shape {tuple(bias.shape)} for {weight.shape[0]} outputs")
