"""Which way of multiplying few rows with a model's weights is the fastest on this processor.

Other programs disturb such a timing. So a way has to be clearly faster than torch's own to be taken, what was measured
on a busy machine counts for nothing, and what was found is kept: an engine computes the same way each time it starts.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, product
from pathlib import Path

import torch
from torch import Tensor

from ewe.config.cache_folder import cache_folder, write_whole

Multiply = Callable[[Tensor, Tensor, Tensor | None], Tensor]

_log = logging.getLogger(__name__)
_BUDGET_S, _LIMIT_S = 0.25, 1.0
_LEAST_ROUNDS = 4
# A weight is timed in parts of so many numbers, so that a large one takes no longer than a small one.
_PART = 1 << 21
# How much faster than torch's own way another has to be.
_GAIN = 1.1
# On an idle machine the two least times of almost every product agree within this factor.
_AGREE, _SHARE_AGREEING = 1.2, 0.75


def fastest_ways(weights: Sequence[Tensor], ways: Mapping[str, Multiply], row_counts: Sequence[int]) -> tuple[str, ...]:
    """The name of the way that multiplies all the weights fastest, for each number of rows.

    weights: float32 [out, in]. A way that is not clearly faster than "torch" loses to it, and on a busy machine all do.
    What has been found on this processor for such weights before is read, not timed again.
    """
    shapes = Counter(f"{len(weight)}x{weight.shape[1]}" for weight in weights)
    facts = [_processor(), f"{torch.get_num_threads()} threads", f"torch {torch.__version__}", *ways, *row_counts]
    key = ", ".join(map(str, facts + [f"{number} of {shape}" for shape, number in sorted(shapes.items())]))
    kept = _read_all().get(key)
    if isinstance(kept, list) and len(kept) == len(row_counts) and all(name in ways for name in kept):
        return tuple(kept)
    # In a thread of its own, as the engine computes: beside the caller's workers its own fall asleep between two
    # products, and a way that is the fastest where they are awake may be the slowest.
    with ThreadPoolExecutor(1) as thread:
        fastest = thread.submit(time_ways, weights, ways, row_counts).result()
    if fastest is None:
        _log.info("this machine is too busy to find the fastest way to multiply; torch's is taken until the next start")
        return ("torch",) * len(row_counts)
    _keep(key, fastest)
    return fastest


@torch.inference_mode()
def time_ways(
    weights: Sequence[Tensor],
    ways: Mapping[str, Multiply],
    row_counts: Sequence[int],
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[str, ...] | None:
    """As `fastest_ways`, timed now, in rounds over everything; None if other programs disturbed it too much.

    Weights of a shape take turns, part by part, because decoding finds none of them in a cache.
    """
    shapes = {weight.shape: _Parts([one for one in weights if one.shape == weight.shape]) for weight in weights}
    # All of a way in one go, as a pass does: threads that served another library take their time to wake.
    cells = list(product(ways, row_counts, shapes))
    times: dict[tuple[str, int, torch.Size], list[float]] = {cell: [] for cell in cells}
    begin = clock()
    while len(times[cells[-1]]) < _LEAST_ROUNDS or clock() - begin < _BUDGET_S:
        for name, number, shape in cells:
            x, part = torch.ones(number, shape[1]), shapes[shape].next()
            start = clock()
            ways[name](x, part, None)
            times[name, number, shape].append(clock() - start)
            if clock() - begin > _LIMIT_S:
                return None
    best = {cell: sorted(taken[1:])[:2] for cell, taken in times.items()}  # the first round only warmed up
    if sum(second <= _AGREE * first for first, second in best.values()) < _SHARE_AGREEING * len(cells):
        return None

    def total(number: int, name: str) -> float:
        return sum(best[name, number, shape][0] * parts.count for shape, parts in shapes.items())

    return tuple(_winner({name: total(number, name) for name in ways}) for number in row_counts)


class _Parts:
    """Runs of whole rows of weights of one shape, in turns; count: how many such runs the weights hold."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        num_out, num_in = weights[0].shape
        size = max(1, min(num_out, _PART // num_in))
        self.count = len(weights) * num_out / size
        self._turns = cycle([part for weight in weights for part in torch.split(weight, size) if len(part) == size])

    def next(self) -> Tensor:
        """The next of them."""
        return next(self._turns)


def _winner(times: Mapping[str, float]) -> str:
    name = min(times, key=times.__getitem__)
    return name if times[name] * _GAIN < times["torch"] else "torch"


def _processor() -> str:
    """The name of the processor with its family, model and stepping, where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    names = ("vendor_id", "model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part")
    return " ".join(facts[name] for name in names if name in facts) or torch.backends.cpu.get_cpu_capability()


def _file() -> Path:
    return cache_folder() / "cpu_linear.json"


def _read_all() -> dict[str, list[str]]:
    try:
        entries = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}


def _keep(key: str, names: Sequence[str]) -> None:
    """Writes the file anew; where it cannot be written, ways are timed at every start."""
    try:
        write_whole(_file(), json.dumps(_read_all() | {key: list(names)}, indent=1))
    except OSError as error:
        _log.info("what was measured about this processor is not kept: %s", error)
