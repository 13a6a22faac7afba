"""How many kernels a decoding step launches, by what they do.

On a GPU the profiler counts them while a captured step is replayed. Without one the same step runs on the stand-in of
the tests (`tests/stand_in_gpu`), at a small size: launches depend on the number of layers only. What a library launches
inside one of its calls, such as the second half of a product that is split, shows on a GPU alone.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter

import torch

from benchmarks.common import GPU, ROOT, SMOKE, Size, parse_arguments, report

# Kind by what is found in the names of kernels, of torch's operations and of the libraries' kernels; the first counts.
_KINDS = {
    "attention": r"_piece_kernel",
    "merge": r"_merge_kernel",
    "rotary and write": r"_rotary_write|_write_",
    "norm": r"_norm_kernel",
    "activation": r"_gated_kernel",
    "product": r"gemm|gemv|nvjet|cutlass|splitK|^addmm|^mm$|^linear|_product_kernel",
    "copy": r"[Mm]em(cpy|set)|copy from the host",
}


def kind_of(name: str) -> str:
    """What a kernel of this name does; "other" for torch's small ones."""
    return next((kind for kind, pattern in _KINDS.items() if re.search(pattern, name)), "other")


def figures_of(names: Counter[str], layers: int, batch: int) -> dict[str, float]:
    """Launches by kind, in all, and per layer without the 15 that a step may have beside its layers."""
    kinds: Counter[str] = Counter()
    for name, count in names.items():
        kinds[kind_of(name)] += count
    figures: dict[str, float] = {f"batch_{batch}_{kind.replace(' ', '_')}": kinds[kind] for kind in (*_KINDS, "other")}
    total = sum(names.values())
    return figures | {f"batch_{batch}_launches": total, f"batch_{batch}_per_layer": round((total - 15) / layers, 2)}


def launches(size: Size, batch: int, device: str) -> Counter[str]:
    """What one step of so many answers, with units of their own and one that they share, launches, by name."""
    from benchmarks.rig import Rig, load_synthetic
    from ewe.attention.metadata import ForwardRow

    rig = Rig(load_synthetic(size, device), 16, 64 * (batch + 2))
    shared = rig.slots(16)
    rows = [ForwardRow([3], 40, rig.slots(32)[:20], (shared, rig.slots(16)), (1.0, 1.0)) for _ in range(batch)]

    def step() -> object:
        return rig.runner.forward(rows)

    step()  # makes, compiles and captures it
    return _profiled(step) if torch.cuda.is_initialized() else _counted(step)


def _profiled(step: object) -> Counter[str]:
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        step()  # type: ignore[operator]
        torch.cuda.synchronize()
    on_device = torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]
    return Counter(event.name for event in found.events() if event.device_type == on_device)


def _counted(step: object) -> Counter[str]:
    from stand_in_gpu import DEVICE

    DEVICE.launched.clear()
    step()  # type: ignore[operator]
    return Counter(DEVICE.launched)


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, _add_options)
    on_gpu = arguments.device.startswith("cuda")
    if not on_gpu and "TRITON_INTERPRET" not in os.environ:
        # Triton reads this when it is imported, which it has been.
        command = [sys.executable, "-m", "benchmarks.launches", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"TRITON_INTERPRET": "1"})  # noqa: S606
    size = GPU if on_gpu and not arguments.smoke else SMOKE
    figures: dict[str, float] = {}
    for batch in arguments.batches:
        figures |= figures_of(_taken(size, batch, on_gpu), size.model["num_hidden_layers"], batch)
    report("launches", arguments, {"model": size.name, "layers": size.model["num_hidden_layers"]}, figures)


def _taken(size: Size, batch: int, on_gpu: bool) -> Counter[str]:
    if on_gpu:
        return launches(size, batch, "cuda")
    sys.path.insert(0, str(ROOT / "tests"))
    from stand_in_gpu import in_place

    with in_place():
        return launches(size, batch, "cuda")


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 4], help="answers at once")


if __name__ == "__main__":
    main()
