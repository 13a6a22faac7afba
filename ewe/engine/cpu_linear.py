"""Linear layers on a CPU, whose products of few rows take the way that MKL computes fastest.

Owns: how such a product is asked for, and which layers of a model ask so. Knows torch's modules only. Decoding
multiplies every weight with one row per sequence, which should take the time of reading the weights once. On two cores
of an AMD EPYC, the one processor measured, MKL takes twice that for x W^T, but not for W x^T from two rows on.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

# With two threads W x^T was the faster by a factor of 1.3 to 5 up to so many rows, and padded to 16 by up to 1.5 up to
# 16; beyond them, and for smaller weights, it was not.
_FEW_ROWS, _MOST_ROWS = 8, 16
_LEAST_WEIGHTS = 1 << 18


class CPULinear(nn.Linear):
    """A linear layer in float32 that multiplies up to 16 rows as W x^T; results differ from nn.Linear's by rounding."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] to [..., out]."""
        num_rows = x.numel() // self.in_features
        if not 0 < num_rows <= _MOST_ROWS or torch.compiler.is_compiling() or torch.get_num_threads() == 1:
            return linear(x, self.weight, self.bias)
        rows = pad(x.reshape(num_rows, -1), (0, 0, 0, _padded(num_rows) - num_rows))
        product = torch.mm(self.weight, rows.t())[:, :num_rows].t().contiguous()
        if self.bias is not None:
            product += self.bias
        return product.view(*x.shape[:-1], -1)


def speed_up_decoding(model: Any) -> None:
    """Has the large linear layers of a model on a CPU, in float32, multiply few rows faster, where torch has MKL."""
    if model.device.type != "cpu" or not torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return
    for layer in model.modules():
        # In place, so that tied weights stay tied.
        if type(layer) is nn.Linear and layer.weight.dtype == torch.float32 and layer.weight.numel() >= _LEAST_WEIGHTS:
            layer.__class__ = CPULinear


def _padded(num_rows: int) -> int:
    """The number of rows, at least as many, that takes the least time."""
    if num_rows == 1:
        return 2
    return num_rows if num_rows <= _FEW_ROWS else _MOST_ROWS
