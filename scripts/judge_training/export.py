"""The judge's model directory with its int8 weights.

Layout (all that a loader needs):

- config.json: transformers' BertConfig of a `BertForSequenceClassification` (MiniLM-L6-H384-uncased), `id2label` =
  {0: supported, 1: refuted, 2: inconclusive}.
- tokenizer.json, tokenizer_config.json: transformers' fast BERT tokenizer, `model_max_length` = 512 per pair. A pair
  is encoded as `tokenizer(evidence, claim, truncation="only_first", max_length=512)`: the evidence is the first
  segment (token type 0), the claim the second (token type 1), and only the evidence is cut. Evidence of a titled
  passage reads "Title: text" or the text alone.
- model.safetensors: the names of `BertForSequenceClassification.state_dict()`. Every matrix `NAME` (embeddings, linear
  weights) is int8 [rows, columns] and has its float32 scales [rows] as `NAME.scale`; the weight is
  `NAME.float() * scale[:, None]`. Vectors (biases, layer norms) and the 3-row classifier are float32 as they are and
  have no scale. `ewe.verification.judges.builtin_judge` reads it.

What calibrates the probabilities is folded into the classifier: softmax(logits) is the calibrated probability as it
stands.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from judge_training.metrics import Calibration
from judge_training.model import EMBEDDINGS

SCALE = ".scale"
MIN_ROWS = 8  # A matrix of fewer rows (the classifier) weighs nothing and decides most: it stays float32.


def quantize(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Float weights -> int8 matrices [rows, columns] with float32 scales [rows]; all else float32.

    Symmetric, rounded to nearest: scale = max |row| / 127 (1 for a row of zeros).
    """
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        weight = weight.detach().float().cpu()
        if weight.dim() != 2 or len(weight) < MIN_ROWS:
            packed[name] = weight.contiguous()
            continue
        scale = weight.abs().amax(1) / 127
        scale = torch.where(scale > 0, scale, torch.ones_like(scale))
        packed[name] = (weight / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        packed[name + SCALE] = scale
    return packed


def export_reader(path: Path, judge: nn.Module) -> None:
    """Writes what `load_further` reads: all weights but the word embeddings, matrices in int8."""
    trained = {name: one for name, one in judge.state_dict().items() if not name.startswith(EMBEDDINGS)}
    save_file(quantize(trained), path, {"format": "pt"})


def export_judge(
    directory: Path,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    calibration: Calibration,
    max_length: int,
) -> None:
    """Writes weights, config and tokenizer, each file replaced at once; other files there (the card) stay.

    calibration: applied to the logits, by way of the classifier.
    """
    weights = dict(model.state_dict())
    for name in ("classifier.weight", "classifier.bias"):
        weights[name] = weights[name].float().cpu() / calibration.temperature
    weights["classifier.bias"] += torch.tensor(calibration.biases)
    temporary = directory.with_name(directory.name + ".tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    config = type(model.config).from_dict({**model.config.to_dict(), "dtype": "float32"})
    config.save_pretrained(temporary)
    tokenizer.model_max_length = max_length  # transformers drops a max_length in the config
    tokenizer.save_pretrained(temporary)
    save_file(quantize(weights), temporary / "model.safetensors", {"format": "pt"})
    directory.mkdir(parents=True, exist_ok=True)
    for file in sorted(temporary.iterdir()):
        os.replace(file, directory / file.name)
    temporary.rmdir()
