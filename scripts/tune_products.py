"""Which way of multiplying few rows with a layer's matrices is the fastest on the GPU at hand.

    python scripts/tune_products.py [--rows 1 8 16] [--out FILE]

Per matrix of Llama-3.1-8B and number of rows: torch's product with the small kernels around it (norm, gate, sum), and
`ewe_kernels.few_rows` with all of it inside, under several tiles. Bytes of the matrix per second, as a share of a large
copy's. What is best is written into kernels/ewe_kernels/few_rows.py by hand. Takes two to three minutes, most of it
compiling.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import patch

import torch
from ewe_kernels import few_rows as kernels
from ewe_kernels.few_rows import few_rows
from ewe_kernels.gated import gated
from ewe_kernels.norm import rms_norm
from torch import Tensor
from torch.nn.functional import linear

from benchmarks.attention import Clock
from benchmarks.attention_problem import Shape

EPS = 1e-5
# Outputs (the gate's rows included) and inputs per matrix.
MATRICES = {"qkv": (6144, 4096), "o": (4096, 4096), "gate_up": (28672, 4096), "down": (4096, 14336)}
_TURN_BYTES = 512 << 20
_SHOWN = 3

Call = Callable[[], object]


class Case:
    """One matrix in as many copies as no cache holds, and rows for it."""

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.rows = name, rows
        outputs, size = MATRICES[name]
        copies = -(-_TURN_BYTES // (2 * outputs * size))

        def random(*shape: int) -> Tensor:
            return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) / 16

        self.matrices = [random(outputs, size) for _ in range(copies)]
        self.inputs, self.factors, self.total = random(rows, size), random(size), random(rows, outputs)
        self.num_bytes = self.matrices[0].nbytes

    def library(self) -> list[Call]:
        """torch's product and the kernels around it."""
        return [partial(self._library, matrix) for matrix in self.matrices]

    def fused(self) -> list[Call]:
        """One launch each."""
        norm = (self.factors, EPS) if self.name in ("qkv", "gate_up") else None
        gate = "silu" if self.name == "gate_up" else None
        add_to = self.total if self.name in ("o", "down") else None
        return [partial(few_rows, self.inputs, matrix, None, norm, gate, add_to) for matrix in self.matrices]

    def _library(self, matrix: Tensor) -> None:
        if self.name in ("o", "down"):
            self.total.addmm_(self.inputs, matrix.t())
            return
        found = linear(rms_norm(self.inputs, self.factors, EPS), matrix)
        if self.name == "gate_up":
            gated(*found.chunk(2, -1), "silu")


def tiles(gate: bool) -> Iterator[tuple[dict[str, int], int, int]]:
    """What `few_rows.tile` could say."""
    for outputs, inner, warps, stages in product((16, 32), (64, 128, 256, 512), (2, 4, 8), (3, 5)):
        # What two matrices take of shared memory per stage, with the rows'.
        if (outputs * (2 if gate else 1) + 16) * inner * 2 * stages <= 160 << 10 and outputs * inner >= 1024 * warps:
            yield {"OUTPUTS": outputs, "INNER": inner}, warps, stages


def measure(clock: Clock, case: Case) -> dict[str, object]:
    """Prints and returns the shares of the copy's rate."""

    def share(calls: list[Call]) -> float:
        return round(case.num_bytes / clock.time(calls) / clock.copy_rate, 3)

    found: dict[str, object] = {"library": share(case.library()), "fused": share(case.fused())}
    tried = []
    for choice in tiles(case.name == "gate_up"):
        with patch.object(kernels, "tile", lambda *_, choice=choice: choice):
            try:
                tried.append((share(case.fused()), str(choice)))
            except Exception as error:  # compilers fail in many ways, and every one only rules out a tile
                print(f"   {choice}: {type(error).__name__}", flush=True)
    found["best"] = sorted(tried, reverse=True)[:_SHOWN]
    print(f"{case.name} x {case.rows} rows: {found}", flush=True)
    return found


def main() -> None:
    """Measures all cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to keep a JSON document")
    arguments = parser.parse_args()
    settings = argparse.Namespace(repeats=5, device="cuda")
    clock = Clock(Shape(32, 8, 128, torch.bfloat16, torch.device("cuda")), settings)
    print(clock.ceilings(1 << 30, 1024), flush=True)
    document: dict[str, object] = {"copy_gb_per_s": round(clock.copy_rate / 1e9, 1)}
    for rows, name in product(arguments.rows, MATRICES):
        document[f"{name} {rows}"] = measure(clock, Case(name, rows))
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
