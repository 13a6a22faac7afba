"""How far an answer drifts because a refresh keeps the context's keys and values.

Prompt and text were computed under older units, and a refresh does not compute them again (nor does the paper). Here an
answer is written under k units, r of them are replaced, oldest first, by what retrieval finds next, and the answer goes
on. Each further token's distribution with the kept context is compared with the one that follows if prompt and text are
computed again under the new memory: KL divergence (nats, recomputed against kept) and agreement of the likeliest token.
Model and passages are the built-in ones (--smoke: random tokens). r = 0 is the control: both must agree.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

import torch

from benchmarks import plots
from benchmarks.common import SMOKE, parse_arguments, report
from benchmarks.rig import Rig, drift, load_synthetic
from ewe.config import ModelConfig, resolve_config
from ewe.engine.attention.metadata import IntArray
from ewe.engine.models.loader import load_model
from ewe.engine.units.unit_text import UnitTokenizer
from ewe.evaluation.world.builtin import load_world
from ewe.retrieval.bm25 import BM25Retriever

_CAPACITY = 16384


@dataclass(frozen=True, slots=True)
class Case:
    """Token ids of a prompt, of the units it starts under, and of those that a refresh brings, in order."""

    prompt: list[int]
    units: list[list[int]]
    news: list[list[int]]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Units in memory, and tokens written before and after the refresh."""

    units: int
    before: int
    after: int


def world_cases(rig: Rig, template: str, lengths: Lengths, count: int) -> Iterator[Case]:
    """People whom no training saw: the best passages first, then the next best."""
    world = load_world()
    retriever = BM25Retriever(world.passages)
    encoder = UnitTokenizer(rig.tokenizer, rig.unit_tokens, template)
    for prompt in random.Random(0).sample(world.prompts(kinds=("life",)), count):
        found = [item.passage for item in retriever.retrieve([prompt.text], 2 * lengths.units)[0]]
        units = [list(encoder.encode(passage).token_ids) for passage in found]
        if len(units) == 2 * lengths.units:
            yield Case(rig.tokenizer.encode(prompt.text), units[: lengths.units], units[lengths.units :])


def random_cases(rig: Rig, lengths: Lengths, count: int) -> Iterator[Case]:
    """Random tokens, to see that the script runs."""
    for _ in range(count):
        units = [rig.random_tokens(rig.unit_tokens) for _ in range(2 * lengths.units)]
        yield Case(rig.random_tokens(8), units[: lengths.units], units[lengths.units :])


def write(
    rig: Rig, tokens: list[int], context: IntArray, begin: int, count: int, units: list[IntArray]
) -> torch.Tensor:
    """Appends `count` greedy tokens to `tokens`, running those from `begin` on; log-probabilities [count, vocab]."""
    rows = []
    for _ in range(count):
        logits = rig.run(tokens[begin:], context[: len(tokens)], units)[-1]
        begin = len(tokens)
        rows.append(logits.log_softmax(-1))
        tokens.append(int(logits.argmax()))
    return torch.stack(rows)


def compare(rig: Rig, case: Case, lengths: Lengths, replaced: int) -> tuple[float, float]:
    """Mean KL divergence and top-1 agreement over the tokens after a refresh of `replaced` units."""
    rig.release_all()
    units = [rig.encode(unit) for unit in case.units]
    tokens, total = list(case.prompt), len(case.prompt) + lengths.before + lengths.after
    context = rig.slots(total)
    write(rig, tokens, context, 0, lengths.before, units)
    # The last token written has not been run yet: it runs first under the new memory, as in the engine.
    begin = len(tokens) - 1
    units = [*units[replaced:], *(rig.encode(unit) for unit in case.news[:replaced])]
    kept = write(rig, tokens, context, begin, lengths.after, units)
    again = rig.run(tokens[:-1], rig.slots(total - 1), units, all_logits=True)[begin:].log_softmax(-1)
    divergence, agreement = drift(again, kept)
    return float(divergence.mean()), float(agreement.mean())


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    line = plots.by_number(plots.found(document["figures"], r"kl_nats_replaced_(\d+)"))
    title = "How far the next tokens drift because the context's keys are kept"
    places = f"units replaced, of {document['settings']['units']}"
    return [plots.Panel(title, places, "KL divergence from recomputed keys (nats)", {"": line})]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    if arguments.smoke:
        rig, lengths = Rig(load_synthetic(SMOKE, arguments.device), SMOKE.unit_tokens, _CAPACITY), Lengths(2, 4, 4)
        cases = list(random_cases(rig, lengths, 2))
    else:
        loaded = load_model(ModelConfig(name="builtin", dtype="float32", device=arguments.device))
        memory = resolve_config("builtin", None).memory
        rig, lengths = Rig(loaded, memory.unit_tokens, _CAPACITY), Lengths(8, 32, 32)
        cases = list(world_cases(rig, memory.unit_template, lengths, 20))
    figures: dict[str, float] = {"cases": len(cases)}
    for replaced in sorted({0, 1, lengths.units // 2, lengths.units}):
        results = [compare(rig, case, lengths, replaced) for case in cases]
        figures[f"kl_nats_replaced_{replaced}"] = round(fmean(kl for kl, _ in results), 6)
        figures[f"top1_agreement_replaced_{replaced}"] = round(fmean(agreement for _, agreement in results), 4)
    settings = {
        "model": "random" if arguments.smoke else "builtin",
        "units": lengths.units,
        "tokens_before_refresh": lengths.before,
        "tokens_after_refresh": lengths.after,
    }
    plots.draw(arguments.plot, panels, report("kept_context_staleness", arguments, settings, figures))


if __name__ == "__main__":
    main()
