"""Products of a few rows with a matrix in 16 or 32 bits, with what comes before and after them in the same launch.

Owns: the kernel, its tile and its launcher. Decoding is bound by reading weights, and every launch leaves the memory
idle for a moment: so the RMS norm of the rows, the gated activation and the sum with the residual happen on the way.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.gated import Activation, activated
from ewe_kernels.tiles import dot_precision, next_power_of_two

# The most rows; from here on the tensor cores of a library are as fast.
MOST_ROWS = 16
# The least that the tensor cores take.
_LEAST_ROWS = 16


@triton.jit
def _few_rows_kernel(
    inputs, matrix, factors, offsets, output, num_rows, num_outputs, eps, inputs_stride, output_stride,
    SIZE: tl.constexpr, ROWS: tl.constexpr, OUTPUTS: tl.constexpr, INNER: tl.constexpr, GATE: tl.constexpr,
    SILU: tl.constexpr, ADD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    # The matrix is the left side, whose tiles may be as narrow as 16; the rows are few.
    place = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    row, column = tl.arange(0, ROWS), tl.arange(0, INNER)
    is_output, is_row = place < num_outputs, row < num_rows
    weights = matrix + place.to(tl.int64)[:, None] * SIZE + column[None, :]
    states = inputs + row[None, :] * inputs_stride + column[:, None]
    acc = tl.zeros([OUTPUTS, ROWS], tl.float32)
    up = tl.zeros([OUTPUTS, ROWS], tl.float32)
    squares = tl.zeros([ROWS], tl.float32)
    for start in range(0, SIZE, INNER):
        here = column < SIZE - start
        x = tl.load(states + start, mask=is_row[None, :] & here[:, None], other=0.0)
        w = tl.load(weights + start, mask=is_output[:, None] & here[None, :], other=0.0)
        if factors is not None:
            exact = x.to(tl.float32)
            squares += tl.sum(exact * exact, 0)
            f = tl.load(factors + start + column, mask=here, other=0.0).to(tl.float32)
            x = (exact * f[:, None]).to(w.dtype)
        acc += tl.dot(w, x, input_precision=PRECISION)
        if GATE:
            second = weights + tl.cast(num_outputs, tl.int64) * SIZE
            w = tl.load(second + start, mask=is_output[:, None] & here[None, :], other=0.0)
            up += tl.dot(w, x, input_precision=PRECISION)
    if factors is not None:
        inverse = tl.rsqrt(squares / SIZE + eps)[None, :]
        acc, up = acc * inverse, up * inverse
    if GATE:
        acc = activated(acc, SILU) * up
    if offsets is not None:
        acc += tl.load(offsets + place, mask=is_output, other=0.0).to(tl.float32)[:, None]
    target = output + row[None, :].to(tl.int64) * output_stride + place[:, None]
    mask = is_output[:, None] & is_row[None, :]
    if ADD:
        acc += tl.load(target, mask=mask, other=0.0).to(tl.float32)
    tl.store(target, acc.to(output.dtype.element_ty), mask=mask)


def tile(num_outputs: int, itemsize: int, gate: bool) -> tuple[dict[str, int], int, int]:
    """Sizes, warps and stages of the kernel for a matrix with so many outputs, of numbers of `itemsize` bytes."""
    inner = 256 if itemsize == 2 else 64
    return {"OUTPUTS": 16, "INNER": inner // 2 if gate else inner}, 2 if num_outputs <= 8192 else 4, 4


def few_rows(
    inputs: Tensor,
    matrix: Tensor,
    bias: Tensor | None = None,
    norm: tuple[Tensor, float] | None = None,
    gate: Activation | None = None,
    add_to: Tensor | None = None,
) -> Tensor:
    """matrix inputs[t] + bias per row t, summed in float32: [T, out] in the dtype of inputs [T, in], T <= MOST_ROWS.

    matrix [out, in], dense, in the dtype of inputs; bias [out]. norm: factors [in] and eps; the rows get `rms_norm`
    first (their root mean square acts after the product, which is the same). gate: the matrix holds the rows of a gate
    [out / 2] and then those of what it gates; the result is activation(gate) * other, [T, out / 2], and there is no
    bias. add_to: what the result is added to, in place, and returned. Raises ValueError for what does not fit.
    """
    _check(inputs, matrix, bias, norm, gate, add_to)
    num_rows, size = inputs.shape
    outputs = matrix.shape[0] // (2 if gate else 1)
    output = inputs.new_empty(num_rows, outputs) if add_to is None else add_to
    factors, eps = norm or (None, 0.0)
    sizes, warps, stages = tile(outputs, inputs.element_size(), gate is not None)
    _few_rows_kernel[(triton.cdiv(outputs, sizes["OUTPUTS"]),)](
        inputs, matrix, factors, bias, output, num_rows, outputs, eps, inputs.stride(0), output.stride(0),
        SIZE=size, ROWS=max(_LEAST_ROWS, next_power_of_two(num_rows)), **sizes, GATE=gate is not None,
        SILU=gate == "silu", ADD=add_to is not None, PRECISION=dot_precision(inputs.dtype),
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return output


def _check(
    inputs: Tensor,
    matrix: Tensor,
    bias: Tensor | None,
    norm: tuple[Tensor, float] | None,
    gate: Activation | None,
    add_to: Tensor | None,
) -> None:
    if inputs.dim() != 2 or not 1 <= inputs.shape[0] <= MOST_ROWS or inputs.stride(1) != 1:
        raise ValueError(f"inputs must be 1 to {MOST_ROWS} dense rows, got {tuple(inputs.shape)}")
    if matrix.dim() != 2 or matrix.shape[1] != inputs.shape[1] or not matrix.is_contiguous():
        raise ValueError(f"a matrix of shape {tuple(matrix.shape)} for inputs of shape {tuple(inputs.shape)}")
    outputs = matrix.shape[0] // (2 if gate else 1)
    if bias is not None and (bias.shape != (outputs,) or not bias.is_contiguous() or gate):
        raise ValueError(f"a bias of shape {tuple(bias.shape)} for {outputs} outputs")
    if norm is not None and (norm[0].shape != inputs.shape[1:] or not norm[0].is_contiguous()):
        raise ValueError(f"factors of shape {tuple(norm[0].shape)} for inputs of shape {tuple(inputs.shape)}")
    if add_to is not None and (add_to.shape != (len(inputs), outputs) or add_to.stride(1) != 1):
        raise ValueError(f"a product of shape {(len(inputs), outputs)} cannot be added to {tuple(add_to.shape)}")
    if matrix.dtype != inputs.dtype or (add_to is not None and add_to.dtype != inputs.dtype):
        raise ValueError(f"inputs are {inputs.dtype}, the matrix {matrix.dtype}; all must agree")
