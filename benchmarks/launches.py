"""How many kernels a decoding step launches, by what they do; and how many calls of the host one with a refresh takes.

On a GPU the profiler counts them while a captured step is replayed. Without one the same step runs on the stand-in of
the tests (`tests/stand_in_gpu`), at a small size: launches depend on the number of layers only. What a library launches
inside one of its calls, such as the second half of a product that is split, shows on a GPU alone. As in an engine, a
step begins with the tokens that the one before has drawn, draws its own, and ends when those of that one are read.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch._C._autograd import DeviceType

from benchmarks.common import GPU, ROOT, SMOKE, Sections, parse_arguments

if TYPE_CHECKING:
    from ewe.engine.models.loader import LoadedModel

# Kind by what is found in the names of kernels, of torch's operations and of the libraries' kernels; the first counts.
_KINDS = {
    "attention": r"_piece_kernel",
    "merge": r"_merge_kernel",
    "rotary and write": r"_rotary_write|_write_",
    "norm": r"_norm_kernel",
    "activation": r"_gated_kernel",
    "sampling": r"_statistics_kernel|_candidates_kernel|_sample_kernel",
    "product": r"gemm|gemv|nvjet|cutlass|splitK|^addmm|^mm$|^linear|_product_kernel",
    "copy": r"[Mm]em(cpy|set)|copy (from|to) the host",
}

# What the driver calls it when the host launches something, a whole graph among others.
_BY_HOST = re.compile(r"cu(da)?(LaunchKernel|GraphLaunch|MemcpyAsync|MemsetAsync)")

# Kernels that are listed by themselves, those that take the longest.
_SHOWN = 12

# Answers at once, on the stand-in and on a GPU.
_BATCHES, _GPU_BATCHES = (1, 2), (1, 64, 128)


def kind_of(name: str) -> str:
    """What a kernel of this name does; "other" for torch's small ones."""
    return next((kind for kind, pattern in _KINDS.items() if re.search(pattern, name)), "other")


def figures_of(names: Counter[str], layers: int, batch: int) -> dict[str, float]:
    """Launches by kind, in all, and per layer without the 15 that a step may have beside its layers."""
    total = sum(names.values())
    figures = _by_kind(names, f"batch_{batch}_")
    return figures | {f"batch_{batch}_launches": total, f"batch_{batch}_per_layer": round((total - 15) / layers, 2)}


def _by_kind(amounts: Mapping[str, float], prefix: str, suffix: str = "") -> dict[str, float]:
    found = dict.fromkeys((*_KINDS, "other"), 0.0)
    for name, amount in amounts.items():
        found[kind_of(name)] += amount
    return {f"{prefix}{kind.replace(' ', '_')}{suffix}": round(amount, 1) for kind, amount in found.items()}


def step_of(loaded: LoadedModel, unit_tokens: int, batch: int, refresh: bool = False) -> Callable[[], object]:
    """A decoding step of so many answers, with a unit of their own each and one that they share, ready to be run.

    refresh: whether the shared unit is encoded in it.
    """
    from benchmarks.rig import Rig
    from ewe.engine.attention.metadata import ForwardRow, TokenOnDevice
    from ewe.engine.sampling.fused_sampler import fetch
    from ewe.engine.sampling.sampler import SamplingRow
    from ewe.types.sampling_params import SamplingParams

    own, length = unit_tokens, 2 * unit_tokens
    rig = Rig(loaded, own, (own + length) * (batch + 1))
    shared = rig.slots(own)
    rows = [ForwardRow([3], 2 * length, rig.slots(length), (shared, rig.slots(own)), (1.0, 1.0)) for _ in range(batch)]
    unit = [rig.unit([3] * own, shared)] if refresh else []
    if refresh:
        rig.runner.prepare(batch, own)
    draws = [SamplingRow(SamplingParams(top_p=0.9), (), (), number, temperature=1.0) for number in range(batch)]
    last = fetch(torch.zeros(batch, 2, dtype=torch.int64, device="cuda"))

    def step() -> None:
        nonlocal last
        fed = [replace(row, placeholder=TokenOnDevice(last.ids, number)) for number, row in enumerate(rows)]
        drawn = rig.runner.forward([*unit, *fed], draws).drawn
        assert drawn is not None
        before, last = last, fetch(drawn)
        before.read()

    step()  # makes, compiles and captures it
    return step


def counted(step: Callable[[], object]) -> Counter[str]:
    """What a step launches on the stand-in, by name."""
    from stand_in_gpu import DEVICE

    DEVICE.launched.clear()
    DEVICE.replayed.clear()
    step()
    return Counter(DEVICE.launched)


def launched_by_host(names: Counter[str]) -> int:
    """How many calls of the host the launches that were just `counted` took; the replay of a graph is one."""
    from stand_in_gpu import DEVICE

    calls: int = names.total() - sum(DEVICE.replayed) + len(DEVICE.replayed)
    return calls


def _events(step: Callable[[], object]) -> Any:
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        step()
        torch.cuda.synchronize()
    return found.events() or ()


def profiled(step: Callable[[], object], layers: int, batch: int) -> dict[str, float]:
    """What a step launches on a GPU, and the microseconds that it takes there, by kind."""
    names: Counter[str] = Counter()
    times: defaultdict[str, float] = defaultdict(float)
    for event in _events(step):
        if event.device_type == DeviceType.CUDA:
            names[event.name] += 1
            times[event.name] += event.time_range.elapsed_us()
    for name, took in sorted(times.items(), key=lambda item: -item[1])[:_SHOWN]:
        print(f"{names[name]:5} x {took / names[name]:8.2f} us  {name[:100]}")
    return figures_of(names, layers, batch) | _by_kind(times, f"batch_{batch}_", "_us")


def main() -> None:
    """Runs the benchmark."""
    from benchmarks.rig import load_synthetic

    arguments = parse_arguments(__doc__, _add_options)
    on_gpu = arguments.device.startswith("cuda")
    if not on_gpu and "TRITON_INTERPRET" not in os.environ:
        # Triton reads this when it is imported, which it has been.
        command = [sys.executable, "-m", "benchmarks.launches", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"TRITON_INTERPRET": "1"})  # noqa: S606
    size = GPU if on_gpu and not arguments.smoke else SMOKE
    layers = size.model["num_hidden_layers"]
    sections = Sections("launches", arguments, {"model": size.name, "layers": layers})
    with nullcontext() if on_gpu else _stand_in():
        loaded = load_synthetic(size, "cuda")
        for batch in arguments.batches or (_GPU_BATCHES if on_gpu else _BATCHES):
            measure = partial(_on_gpu if on_gpu else _on_stand_in, loaded, size.unit_tokens, layers, batch)
            sections.take(f"batch {batch}", measure)
    sections.close()


def _on_gpu(loaded: LoadedModel, unit_tokens: int, layers: int, batch: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind, refresh in (("", False), ("refresh_", True)):
        step = step_of(loaded, unit_tokens, batch, refresh)
        if not refresh:
            figures |= profiled(step, layers, batch)
        events = _events(step)
        figures[f"batch_{batch}_{kind}launches"] = sum(event.device_type == DeviceType.CUDA for event in events)
        figures[f"batch_{batch}_{kind}by_host"] = sum(bool(_BY_HOST.match(event.name)) for event in events)
    return figures


def _stand_in() -> AbstractContextManager[Any]:
    sys.path.insert(0, str(ROOT / "tests"))
    from stand_in_gpu import in_place

    place: AbstractContextManager[Any] = in_place()
    return place


def _on_stand_in(loaded: LoadedModel, unit_tokens: int, layers: int, batch: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind, refresh in (("refresh_", True), ("", False)):
        names = counted(step_of(loaded, unit_tokens, batch, refresh))
        figures[f"batch_{batch}_{kind}launches"] = names.total()
        figures[f"batch_{batch}_{kind}by_host"] = launched_by_host(names)
    return figures_of(names, layers, batch) | figures


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batches", type=int, nargs="+", help="answers at once")


if __name__ == "__main__":
    main()
