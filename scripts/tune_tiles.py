"""Which tiles are the fastest on the GPU at hand: tries out those of the attention kernels at Llama-3.1-8B's shape.

    make gpu-tune ARGS="decode shared prefill"

Per kernel and tile one line as it is measured, then the best with today's beside them: the geometric mean, over the
kernel's problems, of the share of what the device can do (a copy's bytes, a matrix product's operations per second).
Takes about nine minutes, most of it compiling. What is best is written into kernels/ewe_kernels/tiles.py by hand:
nothing is tuned while the engine runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import exp, log
from unittest.mock import patch

import torch
from ewe_kernels import prefill, tiles
from ewe_kernels.tiles import Tile

from benchmarks import attention
from benchmarks.attention import Clock, Point
from benchmarks.attention_problem import Problem, Shape
from benchmarks.common import GPU
from ewe.engine.attention import triton_backend

_SHOWN = 5


@dataclass(frozen=True)
class Kernel:
    """One choice of `ewe_kernels.tiles`. owner, name: where it is looked up; today: its tile; others: what to try.

    problems: each yields, under the tile of the moment, the share of what the device can do.
    """

    owner: object
    name: str
    today: Tile
    others: Sequence[Tile]
    problems: Sequence[Callable[[], float]]

    def share(self, tile: Tile) -> float:
        """The geometric mean over the problems; raises what the compiler raises for a tile that does not fit."""
        with patch.object(self.owner, self.name, lambda *_: tile):
            shares = [problem() for problem in self.problems]
        return exp(sum(map(log, shares)) / len(shares))


def tiles_of(rows: Sequence[int], keys: Sequence[int], warps: Sequence[int], stages: Sequence[int]) -> list[Tile]:
    """All combinations."""
    return [Tile(*numbers) for numbers in product(rows, keys, warps, stages)]


def decoding(clock: Clock, point: Point, shared: bool) -> Callable[[], float]:
    """Bytes that have to be read, over time and the copy's rate."""
    problem = Problem(clock.shape, *point, shared=shared)
    return lambda: problem.distinct_bytes / clock.time(problem.engine()) / clock.copy_rate


def prefilling(clock: Clock, runs: int, tokens: int, units: int, unit_tokens: int) -> Callable[[], float]:
    """Operations over time and the product's rate."""
    attend, _, operations = attention.prefill(clock.shape, runs, tokens, units, unit_tokens)
    return lambda: operations / clock.time([attend]) / clock.product_rate


def kernels_of(clock: Clock) -> dict[str, Callable[[], Kernel]]:
    """What can be tuned, by the names of the command line."""
    heads = clock.shape.heads // clock.shape.kv_heads
    dim, dtype = clock.shape.dim, clock.shape.dtype
    narrow, wide = tiles.narrow_tile(heads, dim, dtype), tiles.wide_tile(heads, dim, dtype)
    long = tiles.prefill_tile(heads, dim, dtype)
    return {
        "decode": lambda: Kernel(
            *(triton_backend, "narrow_tile", narrow),
            tiles_of([narrow.rows], [32, 64, 128], [2, 4, 8], [2, 3, 4, 5, 6]),
            [decoding(clock, (batch, 8, 256, 1024), False) for batch in (1, 32, 64)],
        ),
        "shared": lambda: Kernel(
            *(triton_backend, "wide_tile", wide),
            tiles_of([32, 64, 128], [32, 64], [4, 8], [2, 3, 4, 5]),
            [decoding(clock, (64, units, 256, 1024), True) for units in (8, 64)],
        ),
        "prefill": lambda: Kernel(
            *(prefill, "prefill_tile", long),
            tiles_of([64, 128], [32, 64, 128], [4, 8], [2, 3, 4, 5]),
            [prefilling(clock, *runs) for runs in ((8, 256, 0, 0), (1, 1024, 8, 256))],
        ),
    }


def with_other_stages(kernel: Kernel) -> Kernel:
    """The same with tiles that differ from today's in the number of stages alone."""
    stages = {tile.stages for tile in kernel.others}
    return replace(kernel, others=[replace(kernel.today, stages=number) for number in sorted(stages)])


def sweep(kernel: Kernel) -> Iterator[tuple[float, Tile, str]]:
    """Per tile, today's first, its share, or 0 and why it does not run."""
    for tile in (kernel.today, *(tile for tile in kernel.others if tile != kernel.today)):
        try:
            yield kernel.share(tile), tile, ""
        except Exception as error:  # compilers fail in many ways, and every one only rules out a tile
            yield 0.0, tile, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:80]


def tune(name: str, kernel: Kernel) -> Tile:
    """Prints what comes of every tile, and the best; returns the best."""
    found = []
    for share, tile, problem in sweep(kernel):
        found.append((share, tile))
        print(f"{name:8} {_spelled(tile)}  {problem or f'{share:.3f}'}", flush=True)
    today, best = found[0][0], sorted(found, key=lambda item: -item[0])
    print(f"{name}: today's {_spelled(kernel.today)} {today:.3f}; the best:")
    for share, tile in best[:_SHOWN]:
        print(f"    {_spelled(tile)}  {share:.3f}, {share / today if today else float('nan'):.2f} of today's")
    return best[0][1]


def _spelled(tile: Tile) -> str:
    return f"rows {tile.rows:3} keys {tile.keys:3} warps {tile.warps} stages {tile.stages}"


def main() -> None:
    """Tunes what the command line names, or everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="decode, shared, prefill; all if none is named")
    parser.add_argument("--stages", action="store_true", help="only other numbers of stages than today's: a minute")
    arguments = parser.parse_args(namespace=argparse.Namespace(device="cuda", repeats=3, smoke=False))
    if not torch.cuda.is_available():
        parser.error("torch sees no CUDA device: tiles are tuned on the GPU that they are for")
    heads = GPU.model["num_attention_heads"]
    width = GPU.model["hidden_size"] // heads
    clock = Clock(
        Shape(heads, GPU.model["num_key_value_heads"], width, torch.bfloat16, torch.device("cuda")), arguments
    )
    print(torch.cuda.get_device_name(), clock.ceilings(8192))
    known = kernels_of(clock)
    unknown = [name for name in arguments.kernels if name not in known]
    if unknown:
        parser.error(f"no kernel is called {unknown[0]!r}; there are {', '.join(known)}")
    for name in arguments.kernels or known:
        kernel = known[name]()
        tune(name, with_other_stages(kernel) if arguments.stages else kernel)


if __name__ == "__main__":
    main()
