"""What the tests of the kernels share: where they run, and random paged keys and values.

Triton's interpreter multiplies bfloat16 wrongly, so that is left to GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from triton_interpreter import INTERPRETED

BLOCK = 4

_ON_CPU = pytest.mark.skipif(not INTERPRETED, reason="with a GPU at hand, kernels are compiled for it")
PRECISIONS = [
    *(pytest.param("cpu", dtype, marks=_ON_CPU, id=f"cpu-{dtype}") for dtype in (torch.float32, torch.float16)),
    *(
        pytest.param("cuda", dtype, marks=pytest.mark.gpu, id=f"cuda-{dtype}")
        for dtype in (torch.float32, torch.float16, torch.bfloat16)
    ),
]


@dataclass
class Pool:
    """Random keys and values in blocks that segments take in no order; what no segment holds is NaN."""

    keys: torch.Tensor
    values: torch.Tensor
    free: list[int]
    tables: list[int]

    def segment(self, length: int) -> tuple[int, torch.Tensor]:
        """A new segment: where its list of blocks begins in tables, and its slots."""
        begin, count = len(self.tables), -(-length // BLOCK)
        blocks = [self.free.pop() for _ in range(count)]
        self.tables += blocks
        slots = torch.tensor([block * BLOCK + i for block in blocks for i in range(BLOCK)], dtype=torch.int64)[:length]
        for tensor in (self.keys, self.values):
            tensor[slots] = torch.randn(length, *tensor.shape[1:]).to(tensor)
        return begin, slots


def make_pool(device: str, dtype: torch.dtype, kv_heads: int, dim: int, value_dim: int, blocks: int = 64) -> Pool:
    """A pool under torch's seed 0; block 0 stays out."""
    torch.manual_seed(0)
    shape = (blocks * BLOCK, kv_heads)
    keys = torch.full((*shape, dim), torch.nan, dtype=dtype, device=device)
    values = torch.full((*shape, value_dim), torch.nan, dtype=dtype, device=device)
    return Pool(keys, values, (torch.randperm(blocks - 1) + 1).tolist(), [])


def int32(values: object, device: str) -> torch.Tensor:
    """A dense int32 tensor."""
    return torch.tensor(values, dtype=torch.int32, device=device)
