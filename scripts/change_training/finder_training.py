"""The finder's matrices: newer statements next to the older ones that they are about.

Word pieces keep the vectors that they have in the built-in judge; trained are their weights and two matrices, by
telling each newer statement's older one from those of the other pairs of a batch and from other statements.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, softplus

from change_training.statements import APART, Pair
from ewe.longterm.change.change_finder import judge_words, pieces_of

_DIMENSION, _BATCH, _EPOCHS = 128, 256, 6
_RATES = (1e-3, 3e-2, 1e-2)  # of the matrices, the weights and the scale
_DROPPED = 0.2  # of the words of a statement
_APART_WEIGHT = 0.3  # what holds side by side is about the same thing mostly, not always


class Finder(nn.Module):
    """What `ewe.longterm.change.change_finder` computes, with gradients."""

    def __init__(self, judge: Path, texts: Sequence[str]) -> None:
        super().__init__()
        self.tokenizer, words = judge_words(judge)
        self.words = torch.from_numpy(words)
        frequency = Counter(piece for text in texts for piece in set(self.pieces(text)))
        rarity = torch.tensor([math.log((len(texts) + 1) / (frequency[i] + 1)) for i in range(len(self.words))])
        _, _, axes = torch.linalg.svd(self.words, full_matrices=False)
        self.raw = nn.Parameter(rarity / 5)
        self.older = nn.Parameter(axes[:_DIMENSION].T.clone())
        self.newer = nn.Parameter(axes[:_DIMENSION].T.clone())
        self.scale = nn.Parameter(torch.tensor(math.log(20.0)))

    def pieces(self, text: str) -> list[int]:
        """Its word pieces' numbers."""
        return pieces_of(self.tokenizer, text) or [0]

    def forward(self, texts: Sequence[str], side: Tensor) -> Tensor:
        """Unit vectors [texts, dimension]."""
        pieces = [self.pieces(text) for text in texts]
        rows = torch.repeat_interleave(torch.arange(len(texts)), torch.tensor([len(one) for one in pieces]))
        flat = torch.tensor([piece for one in pieces for piece in one])
        weighted = self.words[flat] * self.weights()[flat][:, None]
        return normalize(torch.zeros(len(texts), weighted.shape[1]).index_add(0, rows, weighted) @ side, dim=-1)

    @property
    def sides(self) -> tuple[tuple[str, Tensor], ...]:
        """The matrices with the fields of a pair that they are for."""
        return (("older", self.older), ("newer", self.newer))

    def weights(self) -> Tensor:
        """Of each word piece, above 0."""
        return softplus(4 * self.raw) / 4


def train_finder(judge: Path, pairs: Sequence[Pair], others: Sequence[str], seed: int = 0) -> Finder:
    """A finder for these pairs; others: further statements to tell apart from them. About half a minute."""
    torch.manual_seed(seed)
    random, rows = Random(seed), list(pairs)
    finder = Finder(judge, [text for pair in pairs for text in (pair.older, pair.newer)])
    optimizer = torch.optim.AdamW(
        [{"params": [finder.older, finder.newer]}, {"params": [finder.raw]}, {"params": [finder.scale]}],
        weight_decay=0.0,
    )
    steps = _EPOCHS * (len(rows) // _BATCH)
    for step in range(steps):
        start = step % (len(rows) // _BATCH) * _BATCH
        if not start:
            random.shuffle(rows)
        for group, rate in zip(optimizer.param_groups, _RATES, strict=True):
            group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
        optimizer.zero_grad()
        _loss(finder, rows[start : start + _BATCH], random.sample(list(others), _BATCH), random).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return finder


def export_finder(finder: Finder, path: Path) -> None:
    """The file that `ewe.longterm.change.change_finder` reads, in float16."""
    tensors = {"older": finder.older, "newer": finder.newer, "weights": finder.weights()}
    save_file({name: tensor.detach().half().contiguous() for name, tensor in tensors.items()}, path)


def _loss(finder: Finder, batch: Sequence[Pair], others: Sequence[str], random: Random) -> Tensor:
    newer = finder([_with_gaps(pair.newer, random) for pair in batch], finder.newer)
    older = finder([*(_with_gaps(pair.older, random) for pair in batch), *others], finder.older)
    weights = torch.tensor([_APART_WEIGHT if pair.label == APART else 1.0 for pair in batch])
    losses = cross_entropy(newer @ older.T * finder.scale.exp(), torch.arange(len(batch)), reduction="none")
    return (losses * weights).sum() / weights.sum()


def _with_gaps(text: str, random: Random) -> str:
    return " ".join(word for word in text.split() if random.random() > _DROPPED) or text
