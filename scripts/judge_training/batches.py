"""Pairs as tensors: token ids, batches of like lengths, and what a model says of many pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from judge_training.pairs import Pair

TRAINED_TOKENS = 256
"""What a pair is cut to in training; longer evidence costs more than it teaches."""

READ_TOKENS = 512
"""What a pair is cut to when it is judged: all positions that the encoder has."""

_SORTED_BATCHES = 40  # So many batches are sorted by length together: little padding, yet the order stays random.


@dataclass(frozen=True, slots=True)
class Encoded:
    """One pair: token ids, token types (evidence 0, claim 1) and the label."""

    ids: list[int]
    types: list[int]
    label: int


def encode(tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_tokens: int) -> list[Encoded]:
    """The pairs as `[CLS] evidence [SEP] claim [SEP]`, at most `max_tokens`, of which only evidence is cut."""
    claims = [" ".join(pair.claim.split()[:120]) for pair in pairs]
    made = tokenizer([pair.evidence for pair in pairs], claims, truncation="only_first", max_length=max_tokens)
    types = made["token_type_ids"]
    return [Encoded(*row) for row in zip(made["input_ids"], types, (int(p.label) for p in pairs), strict=True)]


def training_batches(rng: Random, examples: Sequence[Encoded], batch_size: int) -> list[list[Encoded]]:
    """Batches of `batch_size` pairs of like lengths, in random order; what is left over at the end is dropped."""
    order = rng.sample(list(examples), len(examples))
    batches: list[list[Encoded]] = []
    window = batch_size * _SORTED_BATCHES
    for start in range(0, len(order), window):
        chunk = sorted(order[start : start + window], key=lambda example: len(example.ids))
        made = [chunk[place : place + batch_size] for place in range(0, len(chunk), batch_size)]
        batches.extend(batch for batch in made if len(batch) == batch_size)
    rng.shuffle(batches)
    return batches


def collate(examples: Sequence[Encoded]) -> dict[str, Tensor]:
    """Tensors [pairs, longest], padded with 0: input_ids, token_type_ids, attention_mask; and labels [pairs]."""
    width = max(len(example.ids) for example in examples)
    ids, types, mask = (torch.zeros(len(examples), width, dtype=torch.long) for _ in range(3))
    for row, example in enumerate(examples):
        length = len(example.ids)
        ids[row, :length] = torch.tensor(example.ids)
        types[row, :length] = torch.tensor(example.types)
        mask[row, :length] = 1
    labels = torch.tensor([example.label for example in examples])
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask, "labels": labels}


def logits_of(model: nn.Module, examples: Sequence[Encoded], bfloat16: bool = False) -> NDArray[np.float32]:
    """float32 logits [pairs, 3], in order; the model is left in evaluation mode."""
    model.eval()
    order = sorted(range(len(examples)), key=lambda number: len(examples[number].ids))
    logits = np.zeros((len(examples), 3), np.float32)
    for start in range(0, len(order), 64):
        rows = order[start : start + 64]
        batch = collate([examples[row] for row in rows])
        del batch["labels"]
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            logits[rows] = model(**batch).logits.float().numpy()
    return logits


def labels_of(examples: Sequence[Encoded]) -> NDArray[np.int64]:
    """The labels [pairs]."""
    return np.array([example.label for example in examples])
