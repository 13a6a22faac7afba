"""How big the tiles of the kernels are, and why.

tl.dot wants at least 16 rows, so the query heads that share a key head are packed into one tile, and what they do not
fill is masked. All settings are fixed: autotuning would stop the first requests, and its choice would differ from run
to run, and the results with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

# The least rows that tl.dot takes.
_LEAST_ROWS = 16
# Rows of the tile for segments that many sequences share: each pass over the keys serves this many query heads. 64 rows
# are one Hopper wgmma of a warpgroup.
_WIDE_ROWS = 64
# Rows of a prefill tile: two warpgroups of 64 rows each.
_PREFILL_ROWS = 128
# float32 has no tensor cores here (see dot_precision), and its tiles unroll into long code: keep them small.
_FLOAT32_ROWS = 16
# Of the stages that Triton lays passes over, the lookup of blocks takes two and the product one; with fewer than five
# every pass waits for all copies. float32 has no room for so many, nor have wide heads in a prefill on an L4 (99 KiB).
_STAGES, _FEW_STAGES = 5, 3
_PREFILL_WARPS = 8


@dataclass(frozen=True, slots=True)
class Tile:
    """rows: packed query heads (tokens x heads per key head); keys: keys per pass; warps and stages as Triton's.

    resident: programs that a multiprocessor of an H100 holds at once.
    """

    rows: int
    keys: int
    warps: int
    stages: int
    resident: int = 1


def next_power_of_two(number: int) -> int:
    """The least power of two that is not under `number` (at least 1)."""
    return 1 << max(number - 1, 0).bit_length()


def narrow_tile(heads_per_kv: int, head_dim: int, dtype: torch.dtype) -> Tile:
    """The decode tile for keys of one sequence; bound by memory, so loads in flight count, not arithmetic.

    In 16 bits and 128 wide, 64 keys and values are 32 KiB, and two such loads are in flight; a program holds 71 KiB
    then and an H100's multiprocessor three of them: 192 KiB in flight, over latency x bandwidth (3.35 TB/s x 1 us / 132
    = 25 KiB) by far.
    """
    rows = max(_LEAST_ROWS, next_power_of_two(heads_per_kv))
    return Tile(rows, _keys(head_dim, dtype), warps=4, stages=_stages(dtype), resident=3)


def wide_tile(heads_per_kv: int, head_dim: int, dtype: torch.dtype) -> Tile:
    """The decode tile for segments that sequences share; heads wider than 128 get half the rows, or registers spill."""
    wanted = _rows(_WIDE_ROWS, head_dim, dtype)
    rows = max(wanted, next_power_of_two(heads_per_kv))
    return Tile(rows, _keys(head_dim, dtype), warps=4, stages=_stages(dtype), resident=2)


def prefill_tile(heads_per_kv: int, head_dim: int, dtype: torch.dtype) -> Tile:
    """The prefill tile; bound by arithmetic: one program per multiprocessor, its next keys loading meanwhile."""
    rows = max(_rows(_PREFILL_ROWS, head_dim, dtype), next_power_of_two(heads_per_kv))
    if dtype == torch.float32:
        return Tile(rows, _keys(head_dim, dtype), warps=4, stages=_FEW_STAGES)
    stages = _STAGES if head_dim <= 128 else _FEW_STAGES
    return Tile(rows, _keys(head_dim, dtype), _PREFILL_WARPS, stages)


def dot_precision(dtype: torch.dtype) -> str:
    """tl.dot's input_precision: float32 stays float32 (TF32 would be off by 1e-3); 16 bits have one way only."""
    return "ieee" if dtype == torch.float32 else "tf32"


def _rows(wanted: int, head_dim: int, dtype: torch.dtype) -> int:
    if dtype == torch.float32:
        return _FLOAT32_ROWS
    return wanted if head_dim <= 128 else wanted // 2


def _keys(head_dim: int, dtype: torch.dtype) -> int:
    return 64 if head_dim <= 128 and dtype != torch.float32 else 32


def _stages(dtype: torch.dtype) -> int:
    return _FEW_STAGES if dtype == torch.float32 else _STAGES
