"""Pairs per second of the built-in judge at 128 tokens per pair, in every way that its weights can be run here.

Measured on the model alone, on batches of equally long pairs: float32; bfloat16 weights; bfloat16 through autocast
(weights stay float32); int8 products with activations quantized on the fly (CPU); onnxruntime in float32, where it and
onnx are installed (CPU). The largest difference of a probability from float32 stands beside each.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, BertForSequenceClassification

from benchmarks import plots
from benchmarks.common import parse_arguments, report, seconds
from ewe.verification.judges.builtin_judge import load_int8
from ewe.verification.judges.checkpoints import builtin_path

_PAIR_TOKENS = 128
_BATCH = 32
_BATCHES = 8

Forward = Callable[[dict[str, Tensor]], Tensor]


def load_model(device: str) -> nn.Module:
    """The built-in judge in float32."""
    model: Any = BertForSequenceClassification(AutoConfig.from_pretrained(builtin_path()))
    model.load_state_dict(load_int8(builtin_path() / "model.safetensors"))
    judge: nn.Module = model.eval().to(device)
    return judge


def ways(model: nn.Module, device: str) -> dict[str, Forward]:
    """The ways to run the model, by name: inputs -> logits [pairs, 3]."""
    half = copy.deepcopy(model).bfloat16()

    def autocast(inputs: dict[str, Tensor]) -> Tensor:
        with torch.autocast(device.split(":")[0], torch.bfloat16):
            return _logits(model, inputs)

    found: dict[str, Forward] = {
        "float32": lambda inputs: _logits(model, inputs),
        "bfloat16": lambda inputs: _logits(half, inputs),
        "autocast": autocast,
    }
    if device == "cpu":
        quantized = _int8(model)
        found["int8"] = lambda inputs: _logits(quantized, inputs)
        if find_spec("onnxruntime") and find_spec("onnx"):
            found["onnxruntime"] = _onnx(model)
    return found


def _logits(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    logits: Tensor = model(**inputs).logits
    return logits.float()


def _int8(model: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch moves this to another package; what is measured stays the same.
        quantize: Any = torch.ao.quantization.quantize_dynamic
        quantized: nn.Module = quantize(model, {nn.Linear}, dtype=torch.qint8)
    return quantized


def _onnx(model: nn.Module) -> Forward:
    import onnxruntime

    inputs = make_inputs(model, 2, 16, "cpu")
    names = list(inputs)
    file: Any = io.BytesIO()
    axes = {name: {0: "pairs", 1: "tokens"} for name in names}
    torch.onnx.export(
        _Positional(model), tuple(inputs.values()), file, input_names=names, dynamic_axes=axes, dynamo=False
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    return lambda batch: torch.from_numpy(session.run(None, {name: batch[name].numpy() for name in names})[0])


class _Positional(nn.Module):
    """The model with its inputs by position and its logits alone, as the export wants it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return _logits(
            self.model, {"input_ids": input_ids, "token_type_ids": token_type_ids, "attention_mask": attention_mask}
        )


def make_inputs(model: nn.Module, pairs: int, tokens: int, device: str) -> dict[str, Tensor]:
    """Random token ids [pairs, tokens], the last quarter of each row a claim."""
    config: Any = model.config
    generator = torch.Generator().manual_seed(pairs)
    ids = torch.randint(1000, config.vocab_size, (pairs, tokens), generator=generator)
    types = (torch.arange(tokens) >= tokens * 3 // 4).long().expand(pairs, -1).contiguous()
    mask = torch.ones_like(ids)
    return {"input_ids": ids.to(device), "token_type_ids": types.to(device), "attention_mask": mask.to(device)}


def panels(document: plots.Document) -> list[plots.Panel]:
    """What --plot draws."""
    figures = document["figures"]
    return [
        plots.Panel(
            "Speed of the built-in judge", "", "pairs per second", {"": plots.found(figures, r"(\w+)_pairs_per_s")}
        ),
        plots.Panel(
            "What that does to its probabilities",
            "",
            "largest difference from float32",
            {"": plots.found(figures, r"(\w+)_largest_difference")},
        ),
    ]


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, plots.add_option)
    tokens, batches = (16, 1) if arguments.smoke else (_PAIR_TOKENS, _BATCHES)
    pairs = 4 if arguments.smoke else _BATCH
    model = load_model(arguments.device)
    inputs = make_inputs(model, pairs, tokens, arguments.device)
    figures: dict[str, float] = {}
    with torch.inference_mode():
        expected = _logits(model, inputs).softmax(1)
        for name, forward in ways(model, arguments.device).items():

            def run(forward: Forward = forward) -> None:
                for _ in range(batches):
                    forward(inputs)

            took = seconds(run, arguments.device, arguments.repeats)
            figures[f"{name}_pairs_per_s"] = round(batches * pairs / took, 1)
            figures[f"{name}_largest_difference"] = round(float((forward(inputs).softmax(1) - expected).abs().max()), 5)
    settings = {"tokens_per_pair": tokens, "pairs_per_batch": pairs}
    document = report("judge_speed", arguments, settings, figures)
    plots.draw(arguments.plot, panels, document)


if __name__ == "__main__":
    main()
