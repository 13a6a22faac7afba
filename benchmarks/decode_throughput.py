"""How fast the engine writes, against what the device can read and against others with the same weights.

By batch size: tokens per second of the engine, a step of its model runner alone, and which share both are of the least
time in which the weights and the keys can be read (a copy is measured for it). On a GPU also an engine that reads the
tokens of a step before it launches the next (`_waiting`), and beside them transformers' compiled generate with a static
cache, its continuous batching, vLLM (where it is installed), with documents in the prompt, and the engine with compiled
layers (model.compile).

On a CPU also in turns with transformers' plain generate, greedily. Batch 1: one prompt under k documents. Batch 16:
sixteen prompts of 16 to 256 tokens under k documents, whose answers have 16 to 256 tokens; transformers runs one
left-padded batch until the longest answer is done, the engine lets each leave when it is finished. A third run gives
all answers the same length, so that the gain from leaving early can be told from the rest. Times: prefill is a run that
writes one token (documents, which are new in every run, and prompts); decode is what a whole run takes beyond that. All
prompts of a run share their documents: the engine encodes them once, transformers has them in every row. Ratios are
transformers' time over the engine's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import torch
from transformers import StoppingCriteriaList

from benchmarks import plots
from benchmarks.common import SIZES, Sections, Size, parse_arguments, pick_size, seconds, text_of
from benchmarks.decode_limit import (
    CPU_LOADS,
    FIRST_GPU_LOADS,
    MORE_GPU_LOADS,
    SMOKE_LOADS,
    Limit,
    Load,
    copy_rate,
    limit_panels,
    measure_engine,
    measure_step,
)
from benchmarks.decode_peers import EnoughTokens, measure_peer
from benchmarks.rig import load_synthetic, transformers_twin
from ewe import LLM, SamplingParams
from ewe.engine.models.compiled import compile_layers
from ewe.engine.models.cpu_linear import describe_ways
from ewe.engine.models.loader import LoadedModel

_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Work:
    """One run: prompts (token ids), wanted answer lengths in tokens, and the documents of all of them."""

    prompts: list[list[int]]
    lengths: list[int]
    documents: list[str]


class Contest:
    """The engine and transformers with the same random weights."""

    def __init__(self, size: Size, device: str) -> None:
        self.size, self.device, self.salt = size, device, 0
        loaded = load_synthetic(size, device)
        config = {
            "policy": "plain",
            "memory": {"retrieval_units": size.units, "verification_units": 0, "unit_tokens": size.unit_tokens},
            "cache": {"num_blocks": 20 * (size.units * size.unit_tokens + 2 * _LONGEST) // 16},
        }
        self.llm = LLM(config=config, loaded=loaded)
        self.peer = transformers_twin(loaded.model)
        self.peer.generation_config.eos_token_id = None
        self.peer.generation_config.pad_token_id = 0

    def work(self, prompt_lengths: list[int], answer_lengths: list[int]) -> Work:
        """Fresh prompts and documents."""
        self.salt += 1
        vocab_size = self.size.model["vocab_size"]
        prompts = [torch.randint(3, vocab_size, (length,)).tolist() for length in prompt_lengths]
        numbers = range(self.salt * self.size.units, (self.salt + 1) * self.size.units)
        documents = [text_of(self.size.unit_tokens, number) for number in numbers]
        return Work(prompts, answer_lengths, documents)

    def engine(self, work: Work) -> None:
        """The engine writes all answers."""
        params = [SamplingParams(max_tokens=length, ignore_eos=True) for length in work.lengths]
        answers = self.llm.generate(work.prompts, params, documents=work.documents)
        assert [len(answer.token_ids) for answer in answers] == work.lengths

    def transformers(self, work: Work) -> None:
        """transformers writes all answers, as one left-padded batch."""
        memory = [token for document in work.documents for token in self.llm.unit_token_ids(document)]
        longest = max(map(len, work.prompts))
        rows = [[0] * (longest - len(prompt)) + memory + prompt for prompt in work.prompts]
        mask = [[0] * (longest - len(prompt)) + [1] * (len(memory) + len(prompt)) for prompt in work.prompts]
        wanted = torch.tensor(work.lengths, device=self.device)
        self.peer.generate(
            torch.tensor(rows, device=self.device),
            attention_mask=torch.tensor(mask, device=self.device),
            max_new_tokens=max(work.lengths),
            do_sample=False,
            stopping_criteria=StoppingCriteriaList([EnoughTokens(wanted, len(rows[0]))]),
        )


def compare(contest: Contest, prompt_lengths: list[int], answer_lengths: list[int], repeats: int) -> dict[str, float]:
    """Prefill and decode seconds of both, taken in turns, and their ratios."""
    times: dict[str, list[float]] = {"engine": [], "transformers": [], "engine_first": [], "transformers_first": []}
    ones = [1] * len(answer_lengths)
    for _ in range(repeats):
        for name, run in (("engine", contest.engine), ("transformers", contest.transformers)):
            for key, lengths in ((f"{name}_first", ones), (name, answer_lengths)):
                work = contest.work(prompt_lengths, lengths)
                times[key].append(seconds(lambda run=run, work=work: run(work), contest.device, 1, warmups=0))  # type: ignore[misc]
    middle = {key: median(values) for key, values in times.items()}
    ours, theirs = middle["engine"] - middle["engine_first"], middle["transformers"] - middle["transformers_first"]
    return {
        "prefill_engine_s": round(middle["engine_first"], 4),
        "prefill_transformers_s": round(middle["transformers_first"], 4),
        "prefill_transformers_over_engine": round(middle["transformers_first"] / middle["engine_first"], 3),
        "decode_engine_tokens_per_s": round((sum(answer_lengths) - len(ones)) / ours, 1),
        "decode_transformers_tokens_per_s": round((sum(answer_lengths) - len(ones)) / theirs, 1),
        "decode_transformers_over_engine": round(theirs / ours, 3),
        "total_transformers_over_engine": round(middle["transformers"] / middle["engine"], 3),
    }


def size_for(arguments: argparse.Namespace) -> Size:
    """On a CPU the documents are fewer and shorter, so that sixteen prompts with their documents take minutes."""
    size = pick_size(arguments)
    if arguments.device != "cpu" or arguments.smoke:
        return size
    return replace(size, units=2, unit_tokens=64) if _is_large(size) else replace(size, units=4, unit_tokens=128)


def _is_large(size: Size) -> bool:
    return bool(size.model["hidden_size"] >= 2048)


def measure_contest(contest: Contest, arguments: argparse.Namespace) -> dict[str, float]:
    """Single prompts and batches against transformers' generate, in turns."""
    size = contest.size
    batch, shortest, longest = _lengths(arguments, size)
    spread = [round(length) for length in torch.linspace(shortest, longest, batch).tolist()]
    equal = [sum(spread) // batch] * batch
    compare(contest, [4], [4], 1)  # warms both up
    runs = {
        "batch_1": ([size.prompt_tokens], [longest // 2]),
        f"batch_{batch}": (spread[::-1], spread),
        f"batch_{batch}_equal_lengths": (spread[::-1], equal),
    }
    figures: dict[str, float] = {}
    for name, (prompts, answers) in runs.items():
        # On a CPU sixteen answers take a minute, long enough for one run to be a measurement.
        repeats = arguments.repeats if len(prompts) == 1 else 1
        result = compare(contest, prompts, answers, repeats)
        figures |= {f"{name}_{key}": value for key, value in result.items()}
    return figures


def _lengths(arguments: argparse.Namespace, size: Size) -> tuple[int, int, int]:
    """Answers in a batch, and the tokens of the shortest and the longest."""
    if arguments.smoke:
        return 3, 2, 6
    return (16, 4, 32) if arguments.device == "cpu" and _is_large(size) else (16, 16, _LONGEST)


def measure_loads(
    sections: Sections, loaded: LoadedModel, limit: Limit, loads: Sequence[Load], arguments: argparse.Namespace
) -> None:
    """A step of the model runner and the whole engine under every load."""
    for load in loads:
        sections.take(f"step {load.name}", partial(measure_step, loaded, limit, load, arguments.repeats))
        sections.take(f"engine {load.name}", partial(measure_engine, loaded, limit, load, arguments.device))


def measure_limits(sections: Sections, size: Size, arguments: argparse.Namespace) -> None:
    """By batch size: tokens per second and the limit. The engine comes first, then peers, then all other loads."""
    on_gpu = arguments.device.startswith("cuda") and not arguments.smoke
    loads = FIRST_GPU_LOADS if on_gpu else SMOKE_LOADS if arguments.smoke else CPU_LOADS
    loaded = load_synthetic(size, arguments.device)
    limit = Limit(loaded, size, copy_rate(arguments.device, arguments.smoke, arguments.repeats))
    sections.take("limit", lambda: {"copy_gb_per_s": round(limit.copy_rate / 1e9, 1)})
    measure_loads(sections, loaded, limit, loads, arguments)
    if not on_gpu:
        return
    from ewe.engine.models.fused_layer import unfuse_layers

    one, many = loads[:2]
    for name, held in (
        ("transformers_continuous", [many]),
        ("transformers_static", [one]),
        ("vllm", [one, many, Load(32, 512, 64, own_documents=True)]),
    ):
        sections.take(name, partial(measure_peer, name, size, held, arguments.device))
    measure_loads(sections, loaded, limit, MORE_GPU_LOADS, arguments)
    unfuse_layers(loaded.model)
    compile_layers(loaded.model)
    measure_loads(sections, loaded, limit, [replace(load, variant="_compiled") for load in (one, many)], arguments)


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures = document["figures"]
    runs = plots.found(figures, r"(batch_.*)_total_transformers_over_engine")
    ratios = {
        part: {run.replace("_", " "): figures[f"{run}_{part}_transformers_over_engine"] for run in runs}
        for part in ("decode", "total")
    }
    contest = plots.Panel(
        "transformers' generate (longer: the engine wins)", "", "time over the engine's", ratios, (1.0, "the engine")
    )
    return [*limit_panels(figures), contest]


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shape", choices=list(SIZES), help="the model's shape; 100m on a CPU, 8b on a GPU")
    plots.add_option(parser)


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, _add_options)
    size = size_for(arguments)
    batch, shortest, longest = _lengths(arguments, size)
    settings = {
        "model": size.name,
        "dtype": size.dtype,
        "documents": size.units,
        "document_tokens": size.unit_tokens,
        "batch": batch,
        "shortest": shortest,
        "longest": longest,
    }
    contest = Contest(size, arguments.device) if arguments.device == "cpu" else None
    if contest is not None:
        settings["products_of_few_rows"] = describe_ways(contest.llm.client.engine.loaded.model)
        print(f"products of few rows: {settings['products_of_few_rows']}")
    sections = Sections("decode_throughput", arguments, settings)
    if contest is not None:
        sections.take("contest", partial(measure_contest, contest, arguments))
        contest.llm.close()
    measure_limits(sections, size, arguments)
    plots.draw(arguments.plot, panels, sections.close())


if __name__ == "__main__":
    main()
