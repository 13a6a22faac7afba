"""Trains what reads whether words that a claim leaves out of its evidence matter, from the built-in judge.

Run by hand: `PYTHONPATH=. python scripts/train_omission_reader.py`, 20 minutes on two cores. After every hundred steps
the averaged weights, and figures on what is kept apart, are in the run's folder. Then `--export` writes the package's
file. Claims that leave out words were written by reading (`judge_training/written/omissions.jsonl`, the half for tuning
of benchmarks/verdicts_omissions.jsonl); with them come edited sentences of running text and FEVER's claims, so that
what the judge could read before is not forgotten.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import torch
from builtin_training.optim import Average, set_learning_rate
from judge_training.batches import Encoded, collate, encode, logits_of, training_batches
from judge_training.export import export_reader
from judge_training.metrics import ranking, softmax
from judge_training.mixture import Corpus, first_stage
from judge_training.model import build_optimizer, judge_to_train_further, rate_at
from judge_training.pairs import Label, Pair
from judge_training.passages import Passages
from judge_training.reader_command import ROOT, export_run, reader_parser
from judge_training.running import running_pairs
from judge_training.sources import read_rows
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ewe.text.english import words_of
from ewe.verification.omission_reader import MAX_TOKENS, MODEL

_WRITTEN = (
    ROOT / "scripts" / "judge_training" / "written" / "omissions.jsonl",
    ROOT / "benchmarks" / "verdicts_omissions.jsonl",
)
_ORDINALS = sorted(words_of("second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth twentieth"))
_ORDINAL = re.compile(rf"\b(?:{'|'.join(_ORDINALS)})\b")
_BATCH, _SMOOTHING, _LAYER_DECAY = 48, 0.05, 0.95
_LONGEST = 400  # characters of evidence
_RUNNING, _FEVER = 1300, 0.1  # edited sentences an epoch; share of the judge's first stage
_KEPT_APART = 10  # one sentence in so many
_PROBED = 100  # steps


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = reader_parser(__doc__, "omissions")
    parser.add_argument("--steps", type=int, default=900)
    return parser.parse_args(arguments)


def written() -> tuple[list[Pair], list[Pair]]:
    """What is trained on, and what is kept apart; REFUTED stands for "must not be supported".

    The two claims of a sentence stay together.
    """
    rows = [row for path in _WRITTEN for row in read_rows(path) if row.get("half", "tune") == "tune"]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(row["evidence"] for row in rows))}
    pairs = [Pair(row["evidence"], row["claim"], Label[row["label"].upper()]) for row in rows]
    kept = [numbers[pair.evidence] % _KEPT_APART == 0 for pair in pairs]
    halves = [[pair for pair, is_kept in zip(pairs, kept, strict=True) if is_kept == side] for side in (False, True)]
    return halves[0], halves[1]


def epochs(pairs: Sequence[Pair], data: Path, seed: int) -> Iterator[tuple[list[Pair], list[Pair]]]:
    """Per epoch the pairs that were written for this, twice, and others.

    The second time with other ordinals; some also with the sentence as its own claim.
    """
    corpus = Corpus.read(data)
    passages = Passages.read(data, corpus.fever)
    for epoch in count():
        rng = Random(f"omissions/{seed}/{epoch}")
        copies = [Pair(one.evidence, one.evidence, Label.SUPPORTED) for one in rng.sample(pairs, len(pairs) // 10)]
        running = (pair for pair in running_pairs(rng, passages) if len(pair.evidence) < _LONGEST)
        others = [next(running).under_title() for _ in range(_RUNNING)]
        others += [pair for pair in first_stage(corpus, epoch + 1, _FEVER) if len(pair.evidence) < _LONGEST]
        yield [*pairs, *(_with_another_ordinal(pair, rng) for pair in pairs), *copies], others


def _with_another_ordinal(pair: Pair, rng: Random) -> Pair:
    """With another number where evidence and claim have "second" to "twentieth": writers hardly go beyond "third"."""
    places = dict(zip(_ORDINALS, rng.sample(_ORDINALS, len(_ORDINALS)), strict=True))
    evidence, claim = (_ORDINAL.sub(lambda match: places[match[0]], text) for text in (pair.evidence, pair.claim))
    return replace(pair, evidence=evidence, claim=claim)


class Reader:
    """The judge that is trained further, and its tokenizer."""

    def __init__(self, seed: int) -> None:
        self.model, self.tokenizer = judge_to_train_further(seed)

    def encode(self, pairs: Sequence[Pair]) -> list[Encoded]:
        """Pairs as the reader is shown them; those that are too long for it are left out."""
        return [one for one in encode(self.tokenizer, pairs, 512) if len(one.ids) <= MAX_TOKENS]

    def loss(self, batch: dict[str, Tensor], is_open: Tensor) -> Tensor:
        """The mean cross-entropy; is_open: bool [pairs], where any answer but supported is right."""
        labels = batch.pop("labels")
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(**batch).logits
        said = logits.float().log_softmax(-1)
        own = cross_entropy(said, labels, label_smoothing=_SMOOTHING, reduction="none")
        unsaid = -torch.logaddexp(said[:, Label.REFUTED], said[:, Label.INCONCLUSIVE]) - _SMOOTHING / 2 * said[:, 0]
        return torch.where(is_open, unsaid, own).mean()


def figures(reader: Reader, kept: Sequence[Pair]) -> dict[str, float]:
    """Of what was kept apart: the area under the curve, and per threshold the shares of both kinds that pass it."""
    examples = reader.encode(kept)
    said = softmax(logits_of(reader.model, examples, bfloat16=True))[:, Label.SUPPORTED]
    is_said = np.array([example.label == Label.SUPPORTED for example in examples])
    found = {"area": ranking(said, is_said)}
    for limit in (0.5, 0.6, 0.7, 0.8, 0.9):
        found |= {
            f"said from {limit}": np.mean(said[is_said] >= limit),
            f"unsaid from {limit}": np.mean(said[~is_said] >= limit),
        }
    return {name: round(float(share), 3) for name, share in found.items()}


def train(args: argparse.Namespace) -> None:
    """All steps; the averaged weights are written on the way."""
    pairs, kept = written()
    reader = Reader(args.seed)
    optimizer, average = build_optimizer(reader.model, args.lr, _LAYER_DECAY), Average(reader.model, 0.99)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    print(f"{len(pairs)} pairs, {len(kept)} kept apart", flush=True)
    for step, (examples, is_open) in enumerate(_batches(reader, pairs, args), 1):
        reader.model.train()
        set_learning_rate([optimizer], rate_at((step - 1) / args.steps))
        reader.loss(collate(examples), is_open).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(reader.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.update(step - 1)
        if step % _PROBED == 0 or step == args.steps:
            with average.in_place():
                print(step, json.dumps(figures(reader, kept)), flush=True)
                export_reader(args.run_dir / "reader.safetensors", reader.model)
        if step == args.steps:
            return


def _batches(reader: Reader, pairs: Sequence[Pair], args: argparse.Namespace) -> Iterator[tuple[list[Encoded], Tensor]]:
    """Batches, and which of their pairs were written for this and must not be supported."""
    for epoch, (own, others) in enumerate(epochs(pairs, args.data, args.seed)):
        encoded = reader.encode(own)
        unsaid = {id(one) for one in encoded if one.label == Label.REFUTED}
        for batch in training_batches(Random(f"{args.seed}/{epoch}"), encoded + reader.encode(others), _BATCH):
            yield batch, torch.tensor([id(one) in unsaid for one in batch])


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.export:
        export_run(arguments.run_dir, MODEL)
    else:
        train(arguments)
