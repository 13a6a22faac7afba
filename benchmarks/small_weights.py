"""What weights in 8 bits (model.weights) save, and what they change.

Steps: the bytes of a model's weights, and the time of decoding steps and of a prompt, with weights as they are, in int8
and in fp8. The weights are random, which changes no time. Drift, with the built-in model: the KL divergence (nats) of
its next tokens from those of the weights as they are, over passages of its encyclopedia as they stand in memory units;
how often the likeliest token is the same; and how many tokens of greedy answers (with retrieval, without verification)
come before the first that differs. Products: time and error (relative, of the product's norm) of one linear layer in
int8, ours and torchao's, over those of the weights as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks import plots
from benchmarks.common import Sections, Size, parse_arguments, pick_size, require, seconds
from benchmarks.decode_limit import Limit, Load, copy_rate, measure_step
from benchmarks.rig import Rig, Weights, drift, load_synthetic
from ewe import LLM, SamplingParams
from ewe.config import Config, resolve_config
from ewe.engine.models.loader import load_model
from ewe.engine.models.quantization import SmallLinear, round_rows
from ewe.engine.models.small_products import choose_few_rows
from ewe.engine.units.unit_text import UnitTokenizer
from ewe.evaluation.world.builtin import load_world

_KINDS: tuple[Weights, ...] = ("auto", "int8", "fp8")
_NAMES = {"auto": "as they are", "int8": "int8", "fp8": "fp8 (e4m3)"}
_PROMPT = 256


def measure_steps(size: Size, kind: Weights, batches: tuple[int, ...], arguments: Any) -> dict[str, float]:
    """Bytes and times of a random model with weights of one kind."""
    loaded = load_synthetic(size, arguments.device, kind)
    limit = Limit(loaded, size, copy_rate(arguments.device, arguments.smoke, arguments.repeats))
    tensors = (*loaded.model.parameters(), *loaded.model.buffers())
    figures = {f"weights_{kind}_mib": round(sum(item.nbytes for item in tensors) / (1 << 20), 1)}
    for batch in batches:
        load = Load(batch, size.prompt_tokens, 2, variant=f"_{kind}")
        figures |= measure_step(loaded, limit, load, arguments.repeats)
    rig = Rig(loaded, _PROMPT, _PROMPT)
    slots, tokens = rig.slots(_PROMPT), rig.random_tokens(_PROMPT)
    took = seconds(lambda: rig.encode(tokens, slots), arguments.device, arguments.repeats)
    return figures | {f"prompt_of_{_PROMPT}_{kind}_ms": round(1000 * took, 2)}


class Original:
    """What the built-in model says with its weights as they are."""

    def __init__(self, device: str, passages: int, prompts: int, max_tokens: int) -> None:
        self.config = resolve_config("builtin", None).override([f"model.device={device}", "verifier=none"])
        world = load_world()
        self._passages = world.passages[:passages]
        self._prompts = [prompt.text for prompt in world.prompts(kinds=("life",), limit=prompts)]
        self._params = SamplingParams(max_tokens=max_tokens)
        self.log_probabilities = list(self.next_tokens(self.config))
        self.answers = self.write(self.config)

    def next_tokens(self, config: Config) -> Iterator[torch.Tensor]:
        """Per passage float32 [tokens, vocab], natural-log probabilities."""
        loaded = load_model(config.model)
        rig = Rig(loaded, config.memory.unit_tokens, config.memory.unit_tokens)
        encoder = UnitTokenizer(loaded.tokenizer, config.memory.unit_tokens, config.memory.unit_template)
        for passage in self._passages:
            rig.release_all()
            tokens = encoder.encode(passage).token_ids
            yield rig.run(tokens, rig.slots(len(tokens)), [], all_logits=True).log_softmax(-1)

    def write(self, config: Config) -> list[tuple[int, ...]]:
        """Greedy answers, as token ids."""
        with LLM(config=config) as llm:
            answers = llm.generate(self._prompts, self._params)
        return [tuple(answer.token_ids) for answer in answers]

    def drift(self, kind: Weights) -> dict[str, float]:
        """How far the same model with weights of this kind departs from it."""
        config = self.config.override([f"model.weights={kind}"])
        pairs = zip(self.log_probabilities, self.next_tokens(config), strict=True)
        divergence, same = map(torch.cat, zip(*(drift(*pair) for pair in pairs), strict=True))
        answers = list(zip(self.answers, self.write(config), strict=True))
        return {
            f"kl_nats_{kind}": round(float(divergence.mean()), 6),
            f"kl_nats_{kind}_p99": round(float(np.percentile(divergence.cpu().numpy(), 99)), 5),
            f"top1_agreement_{kind}": round(float(same.mean()), 4),
            f"answers_equal_{kind}": round(sum(one == other for one, other in answers) / len(answers), 3),
            f"tokens_before_the_first_difference_{kind}": round(
                float(np.mean([_common(*pair) for pair in answers])), 1
            ),
        }


@torch.inference_mode()
def measure_products(size: Size, batches: tuple[int, ...], arguments: Any) -> dict[str, float]:
    """One up projection in int8, ours and torchao's: times over the exact one's, errors."""
    quantization = require("torchao.quantization")
    device, dtype = torch.device(arguments.device), getattr(torch, size.dtype)
    exact = torch.nn.Linear(size.model["hidden_size"], size.model["intermediate_size"], False, device, dtype)
    peer = torch.nn.Sequential(copy.deepcopy(exact))
    quantization.quantize_(peer, quantization.Int8WeightOnlyConfig())
    ours = SmallLinear(*round_rows(exact.weight, "int8"), None, choose_few_rows("int8", device, dtype))
    figures: dict[str, float] = {}
    for batch in batches:
        rows = torch.randn(batch, exact.in_features, dtype=dtype, device=device)
        wanted = exact(rows).float()
        took = seconds(partial(_often, exact, rows), arguments.device, arguments.repeats)
        for name, layer in (("ours", ours), ("torchao", peer)):
            time = seconds(partial(_often, layer, rows), arguments.device, arguments.repeats) / took
            error = float((layer(rows).float() - wanted).norm() / wanted.norm())
            figures |= {f"product_of_{batch}_{name}": round(time, 2), f"error_of_{batch}_{name}": round(error, 5)}
    return figures


def _often(layer: torch.nn.Module, rows: torch.Tensor) -> None:
    for _ in range(20):
        layer(rows)


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """The length of the longest beginning that both have."""
    shortest = min(len(one), len(other))
    return next((place for place in range(shortest) if one[place] != other[place]), shortest)


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures = document["figures"]

    def by_kind(form: str) -> dict[str, float]:
        return {_NAMES[kind]: figures[form.format(kind)] for kind in _KINDS if form.format(kind) in figures}

    steps = {_NAMES[kind]: plots.by_number(plots.found(figures, rf"batch_(\d+)_{kind}_step_ms")) for kind in _KINDS}
    return [
        plots.Panel("Memory of the weights", "", "MiB", {"": by_kind("weights_{}_mib")}),
        plots.Panel("One step of decoding", "answers at once", "milliseconds", steps),
        plots.Panel(
            "How far next tokens drift (built-in model)", "", "KL divergence (nats)", {"": by_kind("kl_nats_{}")}
        ),
    ]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    size = pick_size(arguments)
    batches = (1, 32, 256) if arguments.device.startswith("cuda") else (1, 16)
    passages, prompts, max_tokens = (2, 1, 8) if arguments.smoke else (200, 40, 64)
    settings = {"model": size.name, "dtype": size.dtype, "prompt_tokens": size.prompt_tokens}
    settings |= {"passages": passages, "answers": prompts}
    sections = Sections("small_weights", arguments, settings)
    for kind in _KINDS:
        sections.take(f"steps {kind}", partial(measure_steps, size, kind, batches, arguments))
    sections.take("products", partial(measure_products, size, (*batches, _PROMPT), arguments))
    original = Original(arguments.device, passages, prompts, max_tokens)
    for kind in _KINDS[1:]:
        sections.take(f"drift {kind}", partial(original.drift, kind))
    plots.draw(arguments.plot, panels, sections.close())


if __name__ == "__main__":
    main()
