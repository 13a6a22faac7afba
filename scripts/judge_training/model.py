"""The model, its optimizer and its loss."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BertForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from ewe.verification.judges.builtin_judge import read_model
from ewe.verification.judges.checkpoints import builtin_path

LABELS = ("supported", "refuted", "inconclusive")
EMBEDDINGS = "bert.embeddings."
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")


def build_model(encoder: Path, seed: int) -> BertForSequenceClassification:
    """The encoder in the directory `encoder` with a new classification head drawn from `seed`."""
    torch.manual_seed(seed)
    names = dict(enumerate(LABELS))
    model: BertForSequenceClassification = BertForSequenceClassification.from_pretrained(
        encoder,
        num_labels=len(LABELS),
        id2label=names,
        label2id={name: number for number, name in names.items()},
        dtype=torch.float32,
    )
    return model


def judge_to_train_further(seed: int, dropout: float = 0.0) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The built-in judge, and its tokenizer, as small readers are trained from it.

    Its word embeddings are kept as they are, since the readers share them with it.
    """
    torch.manual_seed(seed)
    model, tokenizer = read_model(builtin_path())
    model.set_attn_implementation("eager")  # Its backward pass is the quickest on CPUs.
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(EMBEDDINGS))
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout
    return model, tokenizer


def build_optimizer(model: nn.Module, peak_lr: float, layer_decay: float) -> torch.optim.Optimizer:
    """AdamW; the head learns at `peak_lr`, each layer below at `layer_decay` times the rate of the one above.

    Biases and norms are not decayed.
    """
    top = max(int(match[1]) for name, _ in model.named_parameters() if (match := _LAYER.search(name)))
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        layer = _LAYER.search(name)
        depth = top - int(layer[1]) + 1 if layer else top + 2 if "embeddings" in name else 0
        key = (peak_lr * layer_decay**depth, 0.01 if parameter.ndim == 2 else 0.0)
        groups.setdefault(key, []).append(parameter)
    listed = [{"params": members, "lr": lr, "weight_decay": decay} for (lr, decay), members in groups.items()]
    optimizer = torch.optim.AdamW(listed, betas=(0.9, 0.98), fused=True)
    for group in optimizer.param_groups:
        group["peak_lr"] = group["lr"]
    return optimizer


def rate_at(progress: float, warmup: float = 0.06) -> float:
    """Share of the peak learning rate at `progress` in [0, 1]: linear warm-up, then a cosine to 0."""
    if progress < warmup:
        return progress / warmup
    return 0.5 * (1 + math.cos(math.pi * min((progress - warmup) / (1 - warmup), 1.0)))


def loss_of(
    model: nn.Module, batch: Mapping[str, Tensor], smoothing: float, consistency: float
) -> tuple[Tensor, Tensor]:
    """(loss, share of pairs judged rightly), forward pass in bfloat16.

    Every pair is read twice, each time with other units dropped: cross-entropy with label smoothing, summed over both,
    and `consistency` times the symmetric KL divergence of the two answers (R-Drop, Liang et al. 2021, eq. 2 to 4).
    """
    inputs = {name: torch.cat([tensor, tensor]) for name, tensor in batch.items() if name != "labels"}
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(**inputs).logits
    first, second = logits.float().log_softmax(-1).chunk(2)
    labels = batch["labels"]
    loss = sum(nn.functional.cross_entropy(answer, labels, label_smoothing=smoothing) for answer in (first, second))
    apart = ((first.exp() - second.exp()) * (first - second)).sum(-1).mean()  # KL one way and the other
    return loss + 0.5 * consistency * apart, (first.argmax(-1) == labels).float().mean()


def mean_weights(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several models' weights, name by name."""
    return {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}
