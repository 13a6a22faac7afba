"""What fp8 (e4m3) keys and values cost in accuracy, against float32 ones, and what a step takes with them.

Attention: while the model writes, every layer's attention is computed again over keys and values rounded to e4m3, with
a scale per token and head (the engine's), per block and head (as if a block were known when its first token is
written), and without scales; figures are the root mean square of the output's error over that of the output.
Model: answers are written with float32 keys and values, and each token's distribution is computed again with fp8 ones
throughout: KL divergence (nats, of fp8 from float32) and agreement of the likeliest token; the same for the whole model
in bfloat16, to compare with. Values: answers about people whom no training saw are written with both, from retrieved
passages and without a check, and graded: which facts do they state, and are they true; by the bfloat16 model, too.
Steps: time per decoding step of the synthetic model under full memory. The rest is measured on the built-in model.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from benchmarks import plots
from benchmarks.common import SMOKE, Sections, parse_arguments, pick_size, seconds
from benchmarks.kept_context_staleness import Case, Lengths, random_cases, world_cases, write
from benchmarks.rig import Rig, drift, load_synthetic
from ewe import LLM, SamplingParams
from ewe.config import ModelConfig, resolve_config
from ewe.engine.attention.backend import AttentionBackend, LayerCall
from ewe.engine.kvcache.fp8 import FP8, LARGEST, dequantise, quantise
from ewe.engine.models.loader import LoadedModel, load_model
from ewe.evaluation.world.grader import grade
from ewe.evaluation.world.world import World
from ewe.retrieval.datastore import Datastore

_CAPACITY = 2048
_BLOCK = 16
_LENGTHS = Lengths(units=8, before=0, after=64)
_STEPS = 8


def per_block(states: Tensor, block: int) -> Tensor:
    """States [slots, H, D] as e4m3 gives them back with a scale per `block` slots and head."""
    slots, heads, dim = states.shape
    grouped = states.view(-1, block, heads, dim).transpose(1, 2)
    rounded = dequantise(*quantise(grouped.flatten(2)), states.dtype)
    return rounded.view(grouped.shape).transpose(1, 2).reshape(slots, heads, dim)


ROUNDINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "scale_per_token": lambda states: per_block(states, 1),
    f"scale_per_{_BLOCK}_tokens": lambda states: per_block(states, _BLOCK),
    "no_scale": lambda states: states.clamp(-LARGEST, LARGEST).to(FP8).to(states.dtype),
    "bfloat16": lambda states: states.bfloat16().to(states.dtype),
}


class Rounded:
    """A backend that computes every layer's attention once more per rounding and notes the squared errors."""

    def __init__(self, inner: AttentionBackend) -> None:
        self._inner = inner
        self.plan, self.write, self.shares = inner.plan, inner.write, inner.shares
        self.squares = dict.fromkeys([*ROUNDINGS, "output"], 0.0)

    def attend(self, call: LayerCall, plan: Any) -> Tensor:
        """The exact attention."""
        output = self._inner.attend(call, plan)
        self.squares["output"] += float(output.double().square().sum())
        for name, rounding in ROUNDINGS.items():
            pools = rounding(call.pool_key), rounding(call.pool_value)
            other = LayerCall(call.query, call.key, call.value, *pools, call.scale, call.softcap)
            self.squares[name] += float((self._inner.attend(other, plan) - output).double().square().sum())
        return output

    def errors(self) -> dict[str, float]:
        """Per rounding the root mean square of the error over that of the output."""
        total = self.squares["output"]
        return {name: (self.squares[name] / total) ** 0.5 for name in ROUNDINGS}


def attention_figures(rig: Rig, cases: list[Case], lengths: Lengths) -> dict[str, float]:
    """Errors of attention outputs over all layers and decoding steps."""
    runner: Any = rig.runner
    runner.static = None  # steps that are replayed would not pass by here
    exact = runner._backend
    rounded = Rounded(exact)
    for case in cases:
        rig.release_all()
        units, tokens = [rig.encode(unit) for unit in case.units], list(case.prompt)
        context = rig.slots(len(tokens) + lengths.after)
        write(rig, tokens, context, 0, 1, units)
        runner._backend = rounded
        write(rig, tokens, context, len(tokens) - 1, lengths.after - 1, units)
        runner._backend = exact
    return {f"attention_error_{name}": round(error, 5) for name, error in rounded.errors().items()}


def log_probabilities(rig: Rig, case: Case, tokens: list[int]) -> Tensor:
    """[answer, vocab], with the units and the whole text computed anew."""
    rig.release_all()
    units = [rig.encode(unit) for unit in case.units]
    logits = rig.run(tokens[:-1], rig.slots(len(tokens) - 1), units, all_logits=True)
    return logits[len(case.prompt) - 1 :].log_softmax(-1)


def model_figures(rigs: dict[str, Rig], cases: list[Case], lengths: Lengths) -> dict[str, float]:
    """How far distributions are from those of rigs["float32"], over every token of every answer."""
    found: dict[str, list[Tensor]] = {name: [] for name in rigs}
    for case in cases:
        rig, tokens = rigs["float32"], list(case.prompt)
        rig.release_all()
        units = [rig.encode(unit) for unit in case.units]
        write(rig, tokens, rig.slots(len(tokens) + lengths.after), 0, lengths.after, units)
        for name, each in rigs.items():
            found[name].append(log_probabilities(each, case, tokens))
    expected = torch.cat(found.pop("float32"))
    figures: dict[str, float] = {"tokens_compared": len(expected)}
    for name, parts in found.items():
        divergence, agreement = drift(expected, torch.cat(parts))
        figures[f"kl_nats_{name}"] = round(float(divergence.mean()), 6)
        figures[f"kl_nats_{name}_99th"] = round(float(divergence.quantile(0.99)), 6)
        figures[f"top1_agreement_{name}"] = round(float(agreement.mean()), 4)
    return figures


def value_figures(writers: dict[str, tuple[LoadedModel, str]], people: int, max_tokens: int) -> dict[str, float]:
    """Facts that answers copy from their memory, per writer (a model and its cache.dtype), and those of the first.

    A fact is the same if the same answer states it; the shares are of all that either states.
    """
    world = World.generate(0, people)
    prompts = world.prompts(("life", "question"))
    stated: dict[str, set[Any]] = {}
    texts: dict[str, list[str]] = {}
    figures: dict[str, float] = {"answers": len(prompts)}
    for name, (loaded, dtype) in writers.items():
        config = resolve_config("builtin", None).override([f"cache.dtype={dtype}", "scheduler.max_num_seqs=32"])
        config = config.model_copy(update={"datastore": None, "verifier": "none"})
        with LLM(config=config, datastore=Datastore(world.passages), loaded=loaded) as llm:
            answers = llm.generate([prompt.text for prompt in prompts], SamplingParams(max_tokens=max_tokens))
        texts[name] = [answer.text for answer in answers]
        grades = [grade(world, prompt, text) for prompt, text in zip(prompts, texts[name], strict=True)]
        stated[name] = {(number, fact) for number, item in enumerate(grades) for fact in item.true | item.false}
        true = sum(len(item.true) for item in grades)
        figures[f"facts_stated_{name}"] = len(stated[name])
        figures[f"facts_true_share_{name}"] = round(true / max(1, len(stated[name])), 4)
    first, *others = writers
    for name in others:
        both, either = stated[first] & stated[name], stated[first] | stated[name]
        same = fmean(one == other for one, other in zip(texts[first], texts[name], strict=True))
        figures[f"facts_same_share_{name}"] = round(len(both) / max(1, len(either)), 4)
        figures[f"answers_same_share_{name}"] = round(same, 4)
    return figures


def step_figures(arguments: Any) -> dict[str, float]:
    """Bytes per token and time per decoding step of the synthetic model, in its precision and in fp8."""
    size = pick_size(arguments)
    loaded = load_synthetic(size, arguments.device)
    length = size.prompt_tokens + (64 if arguments.smoke else 1024)
    figures: dict[str, float] = {}
    for name, dtype in ((size.dtype, None), ("fp8", FP8)):
        rig = Rig(loaded, size.unit_tokens, size.units * size.unit_tokens + length, dtype)
        units, context = [rig.slots(size.unit_tokens) for _ in range(size.units)], rig.slots(length)

        def steps(rig: Rig = rig, units: Any = units, context: Any = context) -> None:
            for _ in range(_STEPS):
                rig.run([3], context, units)

        figures[f"step_ms_{name}"] = round(seconds(steps, arguments.device, arguments.repeats) / _STEPS * 1e3, 3)
        pool = rig.pool
        figures[f"bytes_per_token_{name}"] = pool.bytes_per_token(pool.layer_shapes, pool.dtype)
    return figures


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    errors = plots.found(document["figures"], r"attention_error_(.+)")
    divergences = plots.found(document["figures"], r"kl_nats_(fp8|bfloat16_model)")
    title = "Error of attention outputs, over their size"
    return [
        plots.Panel(title, "keys and values", "relative error", {"": errors}),
        plots.Panel("Drift of the next token", "", "KL divergence (nats)", {"": divergences}),
    ]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    if arguments.smoke:
        loaded, unit_tokens, lengths = load_synthetic(SMOKE, arguments.device), SMOKE.unit_tokens, Lengths(2, 0, 4)
    else:
        loaded = load_model(ModelConfig(name="builtin", dtype="float32", device=arguments.device))
        unit_tokens, lengths = resolve_config("builtin", None).memory.unit_tokens, _LENGTHS
    rigs = {"float32": Rig(loaded, unit_tokens, _CAPACITY), "fp8": Rig(loaded, unit_tokens, _CAPACITY, FP8)}
    writers = {"float32": (loaded, "auto"), "fp8": (loaded, "fp8_e4m3")}
    if arguments.smoke:
        cases = list(random_cases(rigs["float32"], lengths, 2))
    else:
        template = resolve_config("builtin", None).memory.unit_template
        cases = list(world_cases(rigs["float32"], template, lengths, 20))
        half = load_model(ModelConfig(name="builtin", dtype="bfloat16", device=arguments.device))
        rigs["bfloat16_model"] = Rig(half, unit_tokens, _CAPACITY)
        writers["bfloat16_model"] = half, "auto"
    settings = {
        "model": "random" if arguments.smoke else "builtin",
        "cases": len(cases),
        "units": lengths.units,
        "tokens_written": lengths.after,
        "synthetic": pick_size(arguments).name,
    }
    sections = Sections("fp8_cache", arguments, settings)
    sections.take("attention", lambda: attention_figures(rigs["float32"], cases[:5], lengths))
    sections.take("model", lambda: model_figures(rigs, cases, lengths))
    people, max_tokens = (4, 8) if arguments.smoke else (48, 128)
    sections.take("values", lambda: value_figures(writers, people, max_tokens))
    sections.take("steps", lambda: step_figures(arguments))
    plots.draw(arguments.plot, panels, sections.close())


if __name__ == "__main__":
    main()
