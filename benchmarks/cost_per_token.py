"""What one token costs: against the number of keys it attends to (L + k M), and against the number of refreshes.

Measured: single decoding steps for contexts of L tokens under k units of M tokens, a straight line fitted through them
(fixed cost plus cost per key), transformers' own step over as many keys in the same process, and the decoding time per
token of an answer while 0 to 16 of its units are replaced on the way (the refreshes' own cost is timed apart).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from benchmarks import plots
from benchmarks.common import Size, parse_arguments, pick_size, report, seconds, synchronize
from benchmarks.rig import Rig, load_synthetic, transformers_twin

_STEPS = 8


def step_seconds(rig: Rig, length: int, num_units: int, repeats: int) -> float:
    """Seconds per decoding step with a context of `length` tokens under `num_units` units."""
    rig.release_all()
    context = rig.slots(length)
    units = [rig.slots(rig.unit_tokens) for _ in range(num_units)]

    def steps() -> None:
        for _ in range(_STEPS):
            rig.run([3], context, units)

    return seconds(steps, rig.device, repeats) / _STEPS


@torch.inference_mode()
def peer_step_seconds(peer: Any, num_keys: int, device: str, repeats: int) -> float:
    """Seconds per decoding step of transformers with `num_keys` cached tokens."""
    cache = DynamicCache(config=peer.config)
    peer(torch.full((1, num_keys - 1), 3, device=device), past_key_values=cache, use_cache=True, logits_to_keep=1)
    token = torch.full((1, 1), 3, device=device)

    def steps() -> None:
        for _ in range(_STEPS):
            peer(token, past_key_values=cache, use_cache=True)
        cache.crop(-_STEPS)

    return seconds(steps, device, repeats) / _STEPS


def refresh_run(rig: Rig, size: Size, num_tokens: int, num_refreshes: int) -> tuple[float, float]:
    """Seconds of decoding per token, and seconds per refresh, of one answer with so many refreshes on the way."""
    rig.release_all()
    units = [rig.slots(size.unit_tokens) for _ in range(size.units)]
    context = rig.slots(size.prompt_tokens + num_tokens)
    due = {round((index + 1) * num_tokens / (num_refreshes + 1)) for index in range(num_refreshes)}
    decoding = refreshing = 0.0
    for number in range(num_tokens):
        synchronize(rig.device)
        start = time.perf_counter()
        if number in due:
            rig.encode(rig.random_tokens(size.unit_tokens), units[number % size.units])
            synchronize(rig.device)
            refreshing += time.perf_counter() - start
            start = time.perf_counter()
        rig.run([3], context[: size.prompt_tokens + number], units)
        synchronize(rig.device)
        decoding += time.perf_counter() - start
    return decoding / num_tokens, refreshing / max(1, num_refreshes)


def line(points: list[tuple[int, float]]) -> dict[str, float]:
    """Least-squares line through (keys, seconds): fixed cost, cost per 1,000 keys, variance explained."""
    keys, times = np.array(points, dtype=np.float64).T
    slope, fixed = np.polyfit(keys, times, 1)
    residual = times - (fixed + slope * keys)
    explained = 1 - residual.var() / times.var()
    return {
        "fixed_ms": round(fixed * 1e3, 3),
        "ms_per_1000_keys": round(slope * 1e6, 4),
        "variance_explained": round(float(explained), 4),
    }


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures, unit = document["figures"], document["settings"]["unit_tokens"]
    steps = plots.found(figures, r"ms_context_(\d+_units_\d+)")
    ours = {
        int(context) + int(units) * unit: steps[f"{context}_units_{units}"] for context, units in map(_split, steps)
    }
    theirs = plots.by_number(plots.found(figures, r"transformers_ms_keys_(\d+)"))
    refreshes = plots.found(figures, r"decode_ms_per_token_refreshes_(\d+)")
    return [
        plots.Panel(
            "One token: what its keys cost",
            "keys that it attends to (context and units)",
            "milliseconds per token",
            {"engine": dict(sorted(ours.items())), "transformers": theirs},
        ),
        plots.Panel(
            "One token: what refreshes leave behind (their own time aside)",
            "units replaced on the way",
            "milliseconds per token",
            {"engine": plots.by_number(refreshes)},
        ),
    ]


def _split(name: str) -> list[str]:
    """Context and units of a figure's name."""
    return name.split("_units_")


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size: Size = pick_size(arguments)
    lengths = (32, 64) if arguments.smoke else (512, 2048, 6144)
    tokens = 8 if arguments.smoke else 64
    units = (0, size.units // 2, size.units)
    capacity = max(lengths) + size.units * size.unit_tokens
    rig = Rig(load_synthetic(size, arguments.device), size.unit_tokens, capacity)
    peer = transformers_twin(rig.model)
    points, figures = [], {}
    for length in lengths:
        for num_units in units:
            keys = length + num_units * size.unit_tokens
            cost = step_seconds(rig, length, num_units, arguments.repeats)
            points.append((keys, cost))
            figures[f"ms_context_{length}_units_{num_units}"] = round(cost * 1e3, 3)
            if num_units == size.units:
                other = peer_step_seconds(peer, keys, arguments.device, arguments.repeats)
                figures[f"transformers_ms_keys_{keys}"] = round(other * 1e3, 3)
                figures[f"transformers_over_ewe_keys_{keys}"] = round(other / cost, 3)
    figures |= line(points)
    for refreshes in (0, 2) if arguments.smoke else (0, 4, 16):
        per_token, per_refresh = refresh_run(rig, size, tokens, refreshes)
        figures[f"decode_ms_per_token_refreshes_{refreshes}"] = round(per_token * 1e3, 3)
        figures[f"ms_per_refresh_of_{refreshes}"] = round(per_refresh * 1e3, 3)
    settings = {
        "model": size.name,
        "dtype": size.dtype,
        "unit_tokens": size.unit_tokens,
        "prompt_tokens": size.prompt_tokens,
        "answer_tokens": tokens,
    }
    plots.draw(arguments.plot, panels, report("cost_per_token", arguments, settings, figures))


if __name__ == "__main__":
    main()
