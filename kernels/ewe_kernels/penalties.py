"""Penalties and biases on logits."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ewe_kernels.checks import check_dense, check_logits


@triton.jit
def _penalty_kernel(
    logits, rows, tokens, counts, repetition, presence, frequency, biases, size, logits_stride, BLOCK: tl.constexpr
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    row, token = tl.load(rows + at, mask=mask, other=0), tl.load(tokens + at, mask=mask, other=0)
    count = tl.load(counts + at, mask=mask, other=0)
    place = logits + row.to(tl.int64) * logits_stride + token
    value = tl.load(place, mask=mask, other=0.0)
    factor = tl.where(count >= 0, tl.load(repetition + row, mask=mask, other=1.0), 1.0)
    value = tl.where(value > 0, value / factor, value * factor)
    value -= tl.where(count > 0, tl.load(presence + row, mask=mask, other=0.0), 0.0)
    value -= tl.maximum(count, 0).to(tl.float32) * tl.load(frequency + row, mask=mask, other=0.0)
    tl.store(place, value + tl.load(biases + at, mask=mask, other=0.0), mask=mask)


def penalise(
    logits: Tensor,
    rows: Tensor,
    tokens: Tensor,
    counts: Tensor,
    biases: Tensor,
    repetition: Tensor,
    presence: Tensor,
    frequency: Tensor,
) -> None:
    """Changes logits float32 [rows, vocab] in place at the (row, token) pairs listed, each at most once.

    rows, tokens, counts int32 [n]; counts: how often the row's output has the token, 0 if only its prompt has it, -1 if
    neither (a bias alone). biases float32 [n]: logit_bias, -inf for a banned token. repetition, presence, frequency
    float32 [rows]: positive logits are divided by repetition and others multiplied (CTRL, section 4.1), presence is
    taken off once, frequency per occurrence. Raises ValueError for shapes or dtypes that do not fit.
    """
    check_logits(logits)
    check_dense((len(tokens),), torch.int32, rows, tokens, counts)
    check_dense((len(tokens),), torch.float32, biases)
    check_dense((len(logits),), torch.float32, repetition, presence, frequency)
    if len(tokens):
        _penalty_kernel[(-(-len(tokens) // 128),)](
            logits, rows, tokens, counts, repetition, presence, frequency, biases, len(tokens), logits.stride(0),
            BLOCK=128, num_warps=4,
        )  # fmt: skip
