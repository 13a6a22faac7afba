"""Keys and values in 8 bits: e4m3 numbers with one scale per token and head.

A token's scale depends on that token alone, so tokens are appended, dropped and copied without touching what was
written before.
"""

import torch
from torch import Tensor

FP8 = torch.float8_e4m3fn
SCALE = torch.float32
# How much smaller a float16 with the bits of an e4m3 is.
HALVED = 256
LARGEST = 448.0
# The first CUDA compute capability that reads e4m3 in hardware.
LEAST_CAPABILITY = (8, 9)
# Keeps the scale of an all-zero head from being zero, which would be divided by.
_LEAST = 2.0**-100
# Where they lie in a float16; bit 14 holds a copy of the sign and is left out.
_SIGN_AND_NUMBER = ~(1 << 14)


def quantise(states: Tensor) -> tuple[Tensor, Tensor]:
    """Codes e4m3 [..., D] and scales float32 [...] of states [..., D]: the largest of each D becomes 448.

    What is not finite makes its head of that token NaN.
    """
    states = states.float()
    largest = states.abs().amax(-1)  # times 0: nothing, or NaN for infinity
    # Divided by a tensor: by a number a GPU multiplies with the reciprocal, which rounds differently.
    scales = largest.clamp_min(_LEAST) / largest.new_full((), LARGEST) + largest * 0
    return (states / scales.unsqueeze(-1)).to(FP8), scales


def dequantise(codes: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """States [..., D] of `dtype`: codes e4m3 [..., D] times scales float32 [...]."""
    return halves(codes).to(SCALE).mul_((scales * HALVED).unsqueeze(-1)).to(dtype)


def halves(codes: Tensor) -> Tensor:
    """e4m3 numbers as float16 ones that are HALVED times smaller, exactly; not for NaN.

    The bits are the same with the sign in another place. On a CPU this takes a seventh of the time of torch's own
    conversion.
    """
    bits = codes.view(torch.int8).to(torch.int16).bitwise_left_shift_(7).bitwise_and_(_SIGN_AND_NUMBER)
    return bits.view(torch.float16)
