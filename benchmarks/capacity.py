"""How many machines a load takes, and where each part is full: measured figures per machine, a simulation, arithmetic.

Measured (benchmarks/results): the engine's decoding steps on one H100 with the shape of Llama-3.1-8B, by the number of
answers in a step; searches in a million passages, the judge, the memory store and the server, on two CPU cores.
Simulated: engines with these steps behind the router's own hash ring. Requests ask for topics whose popularity falls
with their rank (Zipf); the passages of a topic are those that BM25 finds for a passage of the Wikipedia sample, which
stands in under other names for as many passages as are asked for. An engine keeps as many units as its memory holds,
the least recently used make room, and a unit that it has not kept takes time between steps. GPUs are full when 5% of
the requests wait for longer than half a second for their first step. Computed: the time to encode a unit, from its
operations and the measured rate of a product of matrices. Assumed: every option, the share of that rate, the rate of
copies from host memory; that parts grow in proportion; that searches and checks, which run meanwhile, hold nothing up.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from benchmarks.capacity_engines import Gpu, Trace, by_ring, most_requests, simulate
from benchmarks.common import ROOT, parse_arguments, report
from benchmarks.shapes import LLAMA, token_bytes, weight_bytes

_UNIT_TOKENS, _PROMPT_TOKENS, _CONTEXT_TOKENS, _MOST_ROWS = 256, 64, 512, 128  # as in the runs that were measured
_PEAK_SHARE = 0.4  # of a product's rate that encoding reaches
_COPY_BYTES_PER_S = 25e9  # from pinned host memory
_GIB = 1 << 30
_FREE_BYTES = (0.9 * 79.2 - 2) * _GIB  # of an H100, for weights and pool
_SIMULATED_S = 20.0

_OPTIONS: dict[str, tuple[float, str]] = {
    "rate": (10_000, "requests per second"),
    "passages": (1_000_000_000, "in the datastore"),
    "users": (10_000_000, "with memories"),
    "memories": (100, "of each user"),
    "answer_tokens": (200, "of each answer, mean"),
    "units": (8, "per answer"),
    "searches": (3, "per answer"),
    "sentences": (10, "that are checked per answer"),
    "pairs": (4, "that are judged per sentence"),
    "zipf": (1.0, "exponent of the topics' popularity"),
    "full": (0.7, "share of the time that hardware may be busy"),
    "gpu_hour": (2.5, "price"),
    "core_hour": (0.04, "price"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """need: so much per second; each: what one `unit` of hardware does per second; basis: where that comes from."""

    name: str
    unit: str
    need: float
    each: float
    basis: str = "measured"

    def number(self, fullness: float) -> int:
        """Units of hardware, busy for this share of the time."""
        return math.ceil(self.need / self.each / fullness)


def measured(name: str) -> dict[str, float]:
    """The figures of a benchmark that was run and kept."""
    figures: dict[str, float] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())["figures"]
    return figures


def h100(loads_units: bool) -> Gpu:
    """One H100 with Llama-3.1-8B, each answer under documents of its own; missing units are loaded or encoded."""
    figures, shape = measured("decode_throughput-cuda"), LLAMA["8b"]
    batches = [1, 8, 32, 64, _MOST_ROWS]
    times = [figures[f"batch_{batch}_engine_step_ms"] / 1e3 for batch in batches]
    own = (figures["batch_32_own_documents_engine_step_ms"] / 1e3 - times[2]) / 32  # per answer, beside shared ones
    steps = [0.0, *(float(np.interp(rows, batches, times)) + own * rows for rows in range(1, _MOST_ROWS + 1))]
    # Two operations per weight of two bytes.
    token_s = weight_bytes(shape) / (_PEAK_SHARE * measured("attention-cuda")["product_tflops"] * 1e12)
    unit_s = _UNIT_TOKENS * (token_bytes(shape) / _COPY_BYTES_PER_S if loads_units else token_s)
    tokens = (_FREE_BYTES - weight_bytes(shape)) / token_bytes(shape) - _MOST_ROWS * _CONTEXT_TOKENS
    return Gpu(steps, _PROMPT_TOKENS * token_s, unit_s, int(tokens // _UNIT_TOKENS))


def choices_per_s(num_gpus: int) -> float:
    """How often one core here finds the engine for a key, all being equally busy."""
    choose, loads = by_ring(num_gpus), {f"gpu{number}": 100 for number in range(num_gpus)}
    start = time.process_time()
    for number in range(2000):
        choose(f"passage {number}", loads)
    return 2000 / (time.process_time() - start)


def parts_of(asked: argparse.Namespace, per_gpu: float) -> list[Part]:
    """What has to be there. What was measured on two cores is halved."""
    passages, memories = measured("retrieval_speed-cpu"), measured("longterm_store-cpu")
    server, judge = measured("server_overhead-cpu"), measured("judge_speed-cpu")
    searches = asked.rate * asked.searches
    shards = math.ceil(asked.passages / 1e6)  # of a million passages, each of which sees every search
    streamed = 16e3 / (server["http_inter_token_ms"] - server["engine_inter_token_ms"])  # 16 answers at a time
    return [
        Part("writing answers", "GPU", asked.rate, per_gpu, "simulated"),
        Part("finding keys", "core", asked.rate, 1e3 / passages["bm25: p50_ms"] / 2),  # the router's own search
        Part("choosing engines", "core", asked.rate, choices_per_s(math.ceil(asked.rate / per_gpu)), "measured now"),
        Part("streaming tokens", "core", asked.rate * asked.answer_tokens, streamed),
        Part("encoding queries", "core", searches, 1e3 / passages["encoder: p50_ms"] / 2),
        Part("searching vectors", "core", searches * shards, passages["ivf: queries_per_s_at_once"] / 2),
        Part("searching memories", "core", asked.rate, 1e3 / memories["users: both_p50_ms"] / 2),
        Part("judging", "core", asked.rate * asked.sentences * asked.pairs, judge["bfloat16_pairs_per_s"] / 2),
    ]


def disk_tib(asked: argparse.Namespace) -> dict[str, float]:
    """TiB that vectors and memories take."""
    per_million = {
        "vectors": asked.passages * measured("retrieval_speed-cpu")["ivf: index_mib_on_disk"],
        "memories": asked.users * asked.memories * measured("longterm_store-cpu")["users: mib_on_disk"],
    }
    return {f"{name}_tib": round(mib / 1e6 / (1 << 20), 2) for name, mib in per_million.items()}


def price_per_million_tokens(parts: Sequence[Part], asked: argparse.Namespace) -> float:
    """GPUs and cores by the hour over the tokens of an hour."""
    prices = {"GPU": asked.gpu_hour, "core": asked.core_hour}
    per_hour = sum(part.number(asked.full) * prices[part.unit] for part in parts)
    return float(per_hour / (asked.rate * asked.answer_tokens * 3600 / 1e6))


def table(parts: Sequence[Part], fullness: float) -> str:
    """The parts in Markdown."""
    lines = ["| part | needed per second | one does | full at | to have | basis |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | --- |")
    for part in parts:
        lines.append(
            f"| {part.name} | {part.need:,.0f} | {part.each:,.1f} per {part.unit} | {part.number(1):,} | "
            f"{part.number(fullness):,} | {part.basis} |"
        )
    return "\n".join(lines)


def simulated(num_gpus: int, trace: Trace, seconds: float) -> dict[str, float]:
    """What so many GPUs take and find of their units, also if requests are dealt out in turn or all units loaded."""
    gpu, name, turns = h100(loads_units=False), f"gpus_{num_gpus}", count()
    per_s, outcome = most_requests(gpu, num_gpus, trace, seconds)
    requests = trace.requests(per_s, seconds)
    in_turn = simulate(gpu, num_gpus, requests, lambda key, loads: f"gpu{next(turns) % len(loads)}")
    loaded_per_s, _ = most_requests(h100(loads_units=True), num_gpus, trace, seconds)
    return {
        f"{name}_requests_per_s": round(per_s, 1),
        f"{name}_tokens_per_s": round(per_s * trace.mean_tokens),
        f"{name}_units_found": round(outcome.units_found, 3),
        f"{name}_units_found_in_turn": round(in_turn.units_found, 3),
        f"{name}_all_units_loaded_requests_per_s": round(loaded_per_s, 1),
    }


def main() -> None:
    """Runs the simulations and prints the table and the figures."""
    asked = parse_arguments(__doc__, _add_options)
    if asked.smoke:
        asked.gpus = [1, 2]
    trace = Trace(asked.passages, asked.units, asked.zipf, asked.answer_tokens)
    figures: dict[str, float] = {}
    for num_gpus in asked.gpus:
        figures |= simulated(num_gpus, trace, 1.0 if asked.smoke else _SIMULATED_S)
    largest = max(asked.gpus)
    parts = parts_of(asked, figures[f"gpus_{largest}_requests_per_s"] / largest)
    print(table(parts, asked.full))
    figures |= {f"{part.name.replace(' ', '_')}_{part.unit}s": part.number(asked.full) for part in parts}
    figures |= disk_tib(asked) | {"price_per_million_tokens": round(price_per_million_tokens(parts, asked), 3)}
    report("capacity", asked, {name: getattr(asked, name) for name in (*_OPTIONS, "gpus")}, figures)


def _add_options(parser: argparse.ArgumentParser) -> None:
    for name, (value, meaning) in _OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help=meaning)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 8, 64, 1024], help="numbers of GPUs to simulate")


if __name__ == "__main__":
    main()
