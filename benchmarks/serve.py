"""How the server holds up under load that does not wait for it: requests arrive at random, whatever is still under way.

Streams of `/v1/completions` start at Poisson times at several rates, from clients in a process of their own. Measured
where they are read: the time to the first token, the time from token to token, both at the median and the 95th
percentile, and goodput, the requests per second that keep to both limits of the settings; one rate also by guidellm,
where it is installed. The policy is `plain`; on a GPU the model is Llama-3.1-8B's shape with random weights, on a CPU
the built-in one.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import plots
from benchmarks.common import GPU, SMOKE, Sections, parse_arguments
from benchmarks.rig import load_synthetic
from benchmarks.serve_client import Load, run_clients
from benchmarks.serve_guidellm import guidellm_figures, run_guidellm
from benchmarks.server_overhead import serving


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request must keep to, to count: seconds to its first token, and mean seconds from token to token."""

    first: float
    next: float


def summary(load: Load, answers: Sequence[Sequence[float]], limits: Limits) -> dict[str, float]:
    """The figures of one load."""
    name = f"rate_{load.rate:g}"
    whole = [seen for seen in answers if len(seen) > 1]
    figures: dict[str, float] = {f"{name}_requests": len(answers), f"{name}_failed": len(answers) - len(whole)}
    if not whole:
        return figures
    first = np.array([seen[0] for seen in whole])
    gaps = np.concatenate([np.diff(seen) for seen in whole])
    for percent in (50, 95):
        figures[f"{name}_first_token_ms_p{percent}"] = round(1e3 * float(np.percentile(first, percent)), 2)
        figures[f"{name}_next_token_ms_p{percent}"] = round(1e3 * float(np.percentile(gaps, percent)), 3)
    good = sum(seen[0] <= limits.first and (seen[-1] - seen[0]) / (len(seen) - 1) <= limits.next for seen in whole)
    figures[f"{name}_goodput_per_s"] = round(good / load.seconds, 3)
    return figures


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures, settings = document["figures"], document["settings"]

    def line(name: str) -> dict[float, float]:
        return plots.by_number(plots.found(figures, rf"rate_([\d.]+)_{name}"))

    def times(name: str) -> dict[str, dict[float, float]]:
        return {"half of them": line(f"{name}_ms_p50"), "95 in 100": line(f"{name}_ms_p95")}

    rates, seconds = "requests that arrive per second", settings["seconds_per_rate"]
    sent = {rate: count / seconds for rate, count in line("requests").items()}
    first, following = (1000 * settings[f"{name}_token_limit_s"] for name in ("first", "next"))
    return [
        plots.Panel("Time to the first token", rates, "milliseconds", times("first_token"), (first, "limit")),
        plots.Panel("Time from token to token", rates, "milliseconds", times("next_token"), (following, "limit")),
        plots.Panel(
            "Requests that keep to both limits",
            rates,
            "requests per second",
            {"have arrived": sent, "kept to both limits": line("goodput_per_s")},
        ),
    ]


def measure_guidellm(port: int, load: Load, limits: Limits, tokenizer: Any) -> dict[str, float]:
    """The same load from another client."""
    return guidellm_figures(load, run_guidellm(port, load, tokenizer), limits.first, limits.next)


def open_engine(device: str, smoke: bool) -> Any:
    """The engine to be served, which does nothing but write."""
    from ewe import LLM

    scheduler = {"max_num_seqs": 128, "max_num_batched_tokens": 4096}
    if not device.startswith("cuda"):
        model = {"name": "builtin", "device": device}
        return LLM(config={"model": model, "policy": "plain", "scheduler": {"max_num_seqs": 32}})
    loaded = load_synthetic(SMOKE if smoke else GPU, device)
    return LLM(config={"policy": "plain", "scheduler": scheduler}, loaded=loaded)


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    on_gpu = arguments.device.startswith("cuda")
    rates, seconds, prompt, answer = ([2, 8, 16, 32], 10.0, 512, 64) if on_gpu else ([2, 8, 16], 10.0, 16, 32)
    if arguments.smoke:
        rates, seconds, prompt, answer = [20], 0.3, 4, 4
    limits = Limits(first=0.5, next=0.05)
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
    settings = {
        "model": "builtin" if not on_gpu else (SMOKE if arguments.smoke else GPU).name,
        "prompt_tokens": prompt,
        "answer_tokens": answer,
        "first_token_limit_s": limits.first,
        "next_token_limit_s": limits.next,
        "seconds_per_rate": seconds,
    }
    sections = Sections("serve", arguments, settings)
    with (
        open_engine(arguments.device, arguments.smoke) as llm,
        serving(llm) as port,
        ProcessPoolExecutor(1, context) as clients,
    ):
        vocab = llm.client.engine.loaded.vocab_size
        loads = [Load(rate, seconds, prompt, answer, vocab, seed) for seed, rate in enumerate(rates)]
        # Warms up what the loads will meet: batches of many sizes.
        clients.submit(run_clients, port, Load(max(rates), seconds / 3, prompt, answer, vocab, seed=99)).result()
        for load in loads:
            run = partial(clients.submit, run_clients, port, load)
            sections.take(f"rate {load.rate}", lambda run=run, load=load: summary(load, run().result(), limits))  # type: ignore[misc]
        load = loads[len(loads) // 3]
        sections.take(f"guidellm {load.rate}", lambda: measure_guidellm(port, load, limits, llm.tokenizer))
    plots.draw(arguments.plot, panels, sections.close())


if __name__ == "__main__":
    main()
