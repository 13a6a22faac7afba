"""How near the engine's attention comes to what the device can do: decoding in bytes, prefill in operations per second.

Decoding reads every key and value once and does little with them, so its limit is the memory's bandwidth, measured here
as a large copy; prefill's is a large matrix product. Measured over a grid of k units of M tokens, contexts of L tokens
and batches, with units of each row's own and with units that all rows share. Peers on the same keys: torch's fused
attention over a dense copy, FlexAttention with the same biases, FlashInfer's paged decoding and its cascade and
FlashAttention 3 (where they are installed), and eq. 1 of the paper as written. On a GPU calls are replayed from a CUDA
graph, so that launching them costs nothing, and as many layers take turns as the cache cannot hold, four at least; on a
CPU the engine's backend is plain torch.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks import attention_peers as peers
from benchmarks import plots
from benchmarks.attention_problem import BLOCK, Problem, Shape, prefill
from benchmarks.common import Sections, parse_arguments, pick_size, seconds
from benchmarks.decode_limit import copy_rate

# Batch, k, M, L.
Point = tuple[int, int, int, int]
Peer = Callable[[Problem], Any]
# Points with peers, points for the engine alone, points with shared units.
_GPU: tuple[list[Point], list[Point], list[Point]] = (
    [(1, 8, 256, 1024), (32, 8, 256, 1024), (64, 8, 256, 1024)],
    [(8, 8, 256, 1024), (32, 0, 256, 1024), (32, 16, 128, 1024), (32, 8, 256, 8192), (256, 8, 256, 1024)],
    [(64, 64, 256, 1024), (64, 8, 256, 1024)],
)
_CPU: tuple[list[Point], list[Point], list[Point]] = ([(1, 8, 256, 256), (8, 8, 256, 256)], [], [(8, 8, 256, 256)])
_SMOKE: tuple[list[Point], list[Point], list[Point]] = ([(2, 2, 32, 64)], [], [(2, 2, 32, 64)])
# Calls in one timing; on a GPU so many that launching their graph is little beside them.
_CALLS, _GPU_CALLS = 16, 208


class Clock:
    """Times calls on one device; ceilings in bytes and operations per second."""

    def __init__(self, shape: Shape, arguments: argparse.Namespace) -> None:
        self.shape, self.repeats = shape, arguments.repeats
        self.device, self.smoke = arguments.device, arguments.smoke
        self.calls = _GPU_CALLS if self.device.startswith("cuda") and not self.smoke else _CALLS
        self.copy_rate = self.product_rate = float("nan")

    def time(self, calls: list[Callable[[], object]]) -> float:
        """Seconds per call, the calls taking turns; on a GPU replayed from a graph, if they can be captured."""

        def turns() -> None:
            for number in range(self.calls):
                calls[number % len(calls)]()

        run: Callable[[], object] = turns
        if self.device.startswith("cuda"):
            for call in calls:
                call()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                turns()
            run = graph.replay
        return seconds(run, self.device, self.repeats) / self.calls

    def ceilings(self, product: int) -> dict[str, float]:
        """Measures what a large copy and a square matrix product of this size reach."""
        # Warm and call by call: first of all and replayed from a graph, an H100 that copies 2,974 GB/s showed 2,422.
        self.copy_rate = copy_rate(self.device, self.smoke, self.repeats)
        one, other = (torch.randn(product, product, dtype=self.shape.dtype, device=self.device) for _ in range(2))
        self.product_rate = 2 * product**3 / self.time([partial(torch.matmul, one, other)])
        return {
            "copy_gb_per_s": round(self.copy_rate / 1e9, 1),
            "product_tflops": round(self.product_rate / 1e12, 2),
        }


def measure_decode(clock: Clock, point: Point) -> dict[str, float]:
    """The engine's decoding at one point of the grid."""
    problem = Problem(clock.shape, *point)
    own = clock.time(problem.engine())
    rate = problem.num_bytes / own
    name = label(point)
    return {
        f"decode_us_{name}": round(own * 1e6, 1),
        f"decode_gb_per_s_{name}": round(rate / 1e9, 1),
        f"decode_of_copy_rate_{name}": round(rate / clock.copy_rate, 3),
    }


def measure_peer(clock: Clock, point: Point, name: str, peer: Peer, shared: bool = False) -> dict[str, float]:
    """A peer's time over the engine's on the same problem, both taken one after the other."""
    problem = Problem(clock.shape, *point, shared=shared)
    own, other = clock.time(problem.engine()), clock.time(peer(problem))
    key = label(point) + ("_shared" if shared else "")
    return {
        f"{name}_us_{key}": round(other * 1e6, 1),
        f"engine_beside_{name}_us_{key}": round(own * 1e6, 1),
        f"{name}_over_engine_{key}": round(other / own, 2),
    }


def measure_peers(sections: Sections, clock: Clock, points: list[Point], everyone: dict[str, Peer]) -> None:
    """All these peers at all points, each as a section of its own."""
    for name, peer in everyone.items():
        for point in points:
            sections.take(f"{name} {label(point)}", partial(measure_peer, clock, point, name, peer))


def measure_shared(clock: Clock, point: Point) -> dict[str, float]:
    """What it saves that all rows share their units."""
    apart, together = (Problem(clock.shape, *point, shared=shared) for shared in (False, True))
    own, shared = clock.time(apart.engine()), clock.time(together.engine())
    name = label(point)
    return {
        f"shared_units_of_copy_rate_{name}": round(together.distinct_bytes / shared / clock.copy_rate, 3),
        f"shared_units_us_{name}": round(shared * 1e6, 1),
        f"unshared_units_us_{name}": round(own * 1e6, 1),
        f"unshared_over_shared_{name}": round(own / shared, 2),
    }


def measure_prefill(clock: Clock, runs: int, tokens: int, units: int, unit_tokens: int) -> dict[str, float]:
    """A prefill in operations per second; without units beside torch's."""
    shape = clock.shape
    attend, call, operations = prefill(shape, runs, tokens, units, unit_tokens)
    took = clock.time([attend])
    rate = operations / took
    name = f"{runs}x{tokens}" + (f"_k{units}_m{unit_tokens}" if units else "")
    figures = {f"prefill_tflops_{name}": round(rate / 1e12, 3)}
    figures[f"prefill_of_product_rate_{name}"] = round(rate / clock.product_rate, 3)
    if not units:
        q, k, v = (
            item.reshape(-1, runs, tokens, shape.dim).transpose(0, 1).contiguous()
            for item in (call.query, call.key, call.value)
        )
        torch_call = partial(scaled_dot_product_attention, q, k, v, is_causal=True, enable_gqa=True)
        figures[f"prefill_sdpa_over_engine_{name}"] = round(clock.time([torch_call]) / took, 2)
    return figures


def label(point: Point) -> str:
    """A point's name in the figures."""
    return "b{}_k{}_m{}_l{}".format(*point)


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures = document["figures"]

    def bars(prefix: str, spell: Callable[[str], str] = _spelled) -> dict[str, float]:
        return {spell(name): value for name, value in plots.found(figures, rf"{prefix}_(b?\d.*)").items()}

    names = {
        "sdpa": "torch's fused attention, dense copy",
        "literal": "equation 1 as written",
        "fp8": "the engine over keys and values in fp8",
        "flex": "FlexAttention",
        "flashinfer": "FlashInfer",
        "flashinfer_without_tensor_cores": "FlashInfer without tensor cores",
        "flash_attention_3": "FlashAttention 3",
        "flashinfer_cascade": "FlashInfer's cascade",
    }
    others = {text: bars(f"{name}_over_engine") for name, text in names.items()}
    return [
        plots.Panel(
            "Decoding: how near the engine comes to a copy",
            "",
            "bytes per second over those of a large copy",
            {"engine": bars("decode_of_copy_rate")},
            (1.0, "a copy of 1 GiB"),
        ),
        plots.Panel(
            "Decoding: time of others (longer: the engine wins)",
            "",
            "time over the engine's",
            {name: points for name, points in others.items() if points},
            (1.0, "the engine"),
        ),
        plots.Panel(
            "What it saves to read units once that all rows share",
            "",
            "time with separate units over time with shared ones",
            {"engine": bars("unshared_over_shared")},
        ),
        plots.Panel(
            "Prefill: how near the engine comes to a matrix product",
            "",
            "operations per second over those of a large product",
            {"engine": bars("prefill_of_product_rate", _spelled_prefill)},
            (1.0, "a matrix product"),
        ),
    ]


def _spelled(name: str) -> str:
    """A point's name in words."""
    batch, units, length, context, *rest = re.findall(r"\d+|shared", name)
    memory = f"{units} {'shared ' if rest else ''}units of {length}"
    return f"batch {batch}, {memory},\ncontext {context}"


def _spelled_prefill(name: str) -> str:
    """A prefill's name in words."""
    runs, tokens, *memory = re.findall(r"\d+", name)
    return f"{runs} x {tokens} tokens" + (",\n{} units of {}".format(*memory) if memory else "")


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size = pick_size(arguments)
    heads = size.model["num_attention_heads"]
    shape = Shape(
        heads,
        size.model["num_key_value_heads"],
        size.model["hidden_size"] // heads,
        getattr(torch, size.dtype),
        torch.device(arguments.device),
    )
    clock = Clock(shape, arguments)
    on_gpu = arguments.device.startswith("cuda") and not arguments.smoke
    with_peers, grid, shared = _GPU if on_gpu else _SMOKE if arguments.smoke else _CPU
    sections = Sections("attention", arguments, {"shape": size.name, "dtype": size.dtype, "block_tokens": BLOCK})
    sections.take("ceilings", lambda: clock.ceilings(8192 if on_gpu else 256))
    for point in (*with_peers, *grid):
        sections.take(f"decode {label(point)}", partial(measure_decode, clock, point))
    for point in shared:
        sections.take(f"shared {label(point)}", partial(measure_shared, clock, point))
    prefills = [(1, 1024, 0, 0), (1, 4096, 0, 0), (8, 256, 0, 0), (1, 1024, 8, 256)] if on_gpu else [(1, 64, 0, 0)]
    for sizes in prefills:
        sections.take(f"prefill {sizes}", partial(measure_prefill, clock, *sizes))
    installed: dict[str, Peer] = {
        "flashinfer": partial(peers.flashinfer_decode, tensor_cores=True),
        "flashinfer_without_tensor_cores": partial(peers.flashinfer_decode, tensor_cores=False),
        "flash_attention_3": peers.flash_attention_3,
    }
    measure_peers(sections, clock, with_peers, installed)
    for point in shared:
        cascade = partial(measure_peer, clock, point, "flashinfer_cascade", peers.flashinfer_cascade, True)
        sections.take(f"flashinfer_cascade {label(point)}", cascade)
    others: dict[str, Peer] = {
        "sdpa": peers.sdpa,
        "literal": Problem.literal,
        "fp8": Problem.in_fp8,
        "flex": peers.flex,
    }
    measure_peers(sections, clock, with_peers, others)
    plots.draw(arguments.plot, panels, sections.close())


if __name__ == "__main__":
    main()
