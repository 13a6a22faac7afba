"""The reader's encoder: that of the built-in judge, trained further, with a classifier of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from builtin_training.optim import set_learning_rate
from judge_training.export import export_reader
from judge_training.model import judge_to_train_further, mean_weights, rate_at
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from change_training.statements import AGAIN, APART, CHANGED, Pair, Statements
from ewe.longterm.change.change_reading import MAX_TOKENS
from ewe.longterm.rule_facts import facts_by_rules
from ewe.verification.judges.builtin_judge import load_int8
from ewe.verification.judges.cross_encoder import multiplies_bfloat16

_DROPOUT, _SMOOTHING = 0.1, 0.05
_BATCH = 32
_TOO_CLOSE, _CLOSEST = 3, 30  # places of the statements beside which others are put
_NAMES = ("Ann", "Ben", "Mei", "Omar", "Ines", "Tom", "Ravi", "Lena", "Ada", "Joe", "Zoe", "Ivo")


class ReaderModel:
    """The judge with its embeddings frozen, and its tokenizer; in bfloat16 where the processor multiplies that."""

    def __init__(self, seed: int) -> None:
        self.model, self.tokenizer = judge_to_train_further(seed, _DROPOUT)
        self._bfloat16 = multiplies_bfloat16(torch.device("cpu"))
        nn.init.normal_(self.model.classifier.weight, std=0.02)
        nn.init.zeros_(self.model.classifier.bias)

    def load(self, path: Path) -> None:
        """Takes the weights of a file that `export` wrote."""
        self.model.load_state_dict(self.model.state_dict() | load_int8(path))

    def average_with(self, path: Path) -> None:
        """Takes the mean of its weights and those of a file, which keeps more of what those could than either does."""
        own, others = self.model.state_dict(), load_int8(path)
        self.model.load_state_dict(own | mean_weights([{name: own[name] for name in others}, others]))

    def logits(self, pairs: Sequence[Pair]) -> Tensor:
        """float32 [pairs, 3]: changed, again, apart."""
        batch = self.tokenizer(
            [pair.older for pair in pairs],
            [pair.newer for pair in pairs],
            truncation="only_first",
            max_length=MAX_TOKENS,
            padding=True,
            return_tensors="pt",
        )
        with torch.autocast("cpu", torch.bfloat16, enabled=self._bfloat16):
            logits: Tensor = self.model(**batch).logits
        return logits.float()

    @torch.no_grad()
    def probabilities(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32 [pairs, 3], in the order of the pairs."""
        self.model.eval()
        found = np.zeros((len(pairs), 3), np.float32)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place].older) + len(pairs[place].newer))
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            found[rows] = self.logits([pairs[row] for row in rows]).softmax(-1).numpy()
        return found

    def export(self, path: Path) -> None:
        """The file that `ewe.longterm.change.change_reading` reads: all but the embeddings, matrices in int8."""
        export_reader(path, self.model)


def train_epoch(reader: ReaderModel, optimizer: Any, pairs: Sequence[Pair], progress: float, share: float) -> float:
    """One pass over the pairs, in their order; progress: the share of the training that is done, share: this one's.

    The mean loss.
    """
    reader.model.train()
    parameters = [parameter for parameter in reader.model.parameters() if parameter.requires_grad]
    batches, losses = list(_batches(pairs)), []
    for number, batch in enumerate(batches):
        set_learning_rate([optimizer], rate_at(progress + share * number / len(batches)))
        labels = torch.tensor([pair.label for pair in batch])
        loss = cross_entropy(reader.logits(batch), labels, label_smoothing=_SMOOTHING)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses))


def build_optimizer(reader: ReaderModel, lr: float) -> torch.optim.Optimizer:
    """AdamW; the classifier, which begins from nothing, learns five times as fast."""
    named = [(name, one) for name, one in reader.model.named_parameters() if one.requires_grad]
    groups = [
        {"params": [one for name, one in named if "classifier" in name], "peak_lr": 5 * lr},
        {"params": [one for name, one in named if "classifier" not in name], "peak_lr": lr},
    ]
    return torch.optim.AdamW(groups, lr=lr, weight_decay=0.01)


def drawn(pairs: Sequence[Pair], talk: Sequence[str], random: Random) -> list[Pair]:
    """The pairs of an epoch: some the other way round, with other spelling or with who says it, and new ones.

    What holds side by side, or is the same, is so the other way round; what two say of themselves is apart, and so is
    small talk (`talk`) from anything.
    """
    rows = []
    for pair in pairs:
        turned = pair.label != CHANGED and random.random() < 0.5
        older, newer = (pair.newer, pair.older) if turned else (pair.older, pair.newer)
        rows.append(_told(Pair(_spelled(older, random), _spelled(newer, random), pair.label, pair.group), random))
    for one in random.sample(list(pairs), len(pairs) // 40):
        rows.append(Pair(one.older, one.older, AGAIN, one.group))
    for one, other in zip(*(random.sample(list(pairs), len(pairs) // 8) for _ in range(2)), strict=True):
        if one.topic != other.topic:
            rows.append(Pair(one.older, other.newer, APART, one.group))
    said = random.choices([pair.newer for pair in pairs], k=len(pairs) // 12)
    rows += [_told(Pair(text, random.choice(talk), APART, "talk"), random) for text in said]
    rows += [_told(Pair(random.choice(talk), text, APART, "talk"), random) for text in said]
    rows += [_told(Pair(random.choice(talk), random.choice(talk), APART, "talk"), random) for _ in said]
    random.shuffle(rows)
    return rows


def beside_others(pairs: Sequence[Pair], closeness: NDArray[np.float32], random: Random) -> list[Pair]:
    """Newer statements beside older ones of the same writer that are close to them, but of another pair and topic.

    closeness: float32 [pairs, pairs], of each newer statement (rows) to each older one. The very closest are left out:
    by chance the newer one may end them.
    """
    rows = []
    for place in random.sample(range(len(pairs)), len(pairs) // 8):
        new = pairs[place]
        ranked = [pairs[other] for other in np.argsort(-closeness[place])]
        others = [old for old in ranked if old.group == new.group and old.topic != new.topic and old.older != new.older]
        if len(others) > _CLOSEST:
            old = random.choice(others[_TOO_CLOSE:_CLOSEST])
            rows.append(_told(Pair(old.older, new.newer, APART, new.group), random))
    return rows


def from_histories(found: Sequence[Statements], closest: dict[str, list[Pair]], random: Random) -> list[Pair]:
    """Of each history all pairs that are not apart, and half as many again of those apart that the reader would see."""
    rows = []
    for history in found:
        told = [pair for pair in history.pairs() if pair.label != APART]
        rows += told + random.sample(closest[history.group], min(len(closest[history.group]), 3 * len(told)))
    return rows


def from_profiles(found: Sequence[Sequence[Pair]], random: Random) -> list[Pair]:
    """Of each profile all pairs that are not apart, and twice as many of those that are."""
    rows = []
    for pairs in found:
        told = [pair for pair in pairs if pair.label != APART]
        rows += told + random.sample([pair for pair in pairs if pair.label == APART], 2 * len(told))
    return rows


def as_facts(pairs: Sequence[Pair], random: Random) -> list[Pair]:
    """The pairs in the words of the facts that rules take from both statements, told of somebody by name.

    A statement of several facts is taken only where both hold: which of them ends, no label says.
    """
    rows = []
    for pair in pairs:
        name = random.choice(_NAMES)
        older, newer = (facts_by_rules(name, text) for text in (pair.older, pair.newer))
        if (older and newer) and (pair.label == APART or len(older) == len(newer) == 1):
            rows.append(Pair(random.choice(older), random.choice(newer), pair.label, pair.group))
    return rows


def _told(pair: Pair, random: Random) -> Pair:
    """Sometimes with the speaker's name before it, as conversations of several people are kept."""
    if random.random() > 0.1:
        return pair
    one, other = random.sample(_NAMES, 2)
    if random.random() < 0.5:
        return Pair(f"{one}: {pair.older}", f"{one}: {pair.newer}", pair.label, pair.group)
    apart = pair.label if pair.label == APART or not _is_own(pair) else APART
    return Pair(f"{one}: {pair.older}", f"{other}: {pair.newer}", apart, pair.group)


def _is_own(pair: Pair) -> bool:
    """Whether both speak of their speakers, so that in two mouths they are of two people."""
    own = {"i", "my", "i'm", "i've", "im", "we", "our", "we're", "we've", "me"}
    return all(own.intersection(text.lower().replace("’", "'").split()) for text in (pair.older, pair.newer))


def _spelled(text: str, random: Random) -> str:
    text = text.lower() if random.random() < 0.15 else text
    return "".join(mark for mark in text if mark not in ".,!'") if random.random() < 0.15 else text


def _batches(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Batches of like length, which cost less, out of stretches of sixteen."""
    for start in range(0, len(pairs), 16 * _BATCH):
        rows = sorted(pairs[start : start + 16 * _BATCH], key=lambda pair: len(pair.older) + len(pair.newer))
        cuts = list(range(0, len(rows), _BATCH))
        Random(start).shuffle(cuts)
        yield from (rows[cut : cut + _BATCH] for cut in cuts)
