"""Keys and values in 8 bits: e4m3 numbers with one scale per token and head.

Owns: rounding to them and back, in plain torch. Knows tensors only. A token's scale depends on that token alone, so
tokens are appended, dropped and copied without touching what was written before.
"""

from __future__ import annotations

import torch
from torch import Tensor

FP8 = torch.float8_e4m3fn
SCALE = torch.float32
_LARGEST = 448.0
# Keeps the scale of an all-zero head from being zero, which would be divided by.
_LEAST = 2.0**-100


def quantise(states: Tensor) -> tuple[Tensor, Tensor]:
    """Codes e4m3 [..., D] and scales float32 [...] of states [..., D]: the largest of each D becomes 448.

    What is not finite makes its head of that token NaN.
    """
    states = states.float()
    scales = states.abs().amax(-1).clamp_min_(_LEAST).div_(_LARGEST)
    return (states / scales.unsqueeze(-1)).to(FP8), scales


def dequantise(codes: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """States [..., D] of `dtype`: codes e4m3 [..., D] times scales float32 [...], rounded once."""
    return codes.to(SCALE).mul_(scales.unsqueeze(-1)).to(dtype)
