"""Trains what finds the sentence that answers a question, from the built-in judge.

Run by hand: `PYTHONPATH=. python scripts/train_answer_finder.py`, a quarter of an hour on two cores. Every few minutes
the averaged weights, and figures on what is kept apart, are in the run's folder. Then `--export` writes the package's
file. The questions are those of `judge_training/question_sets.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from itertools import count
from random import Random

import numpy as np
import torch
from builtin_training.optim import Average, set_learning_rate
from judge_training.batches import Encoded, collate, encode, logits_of, training_batches
from judge_training.export import export_reader
from judge_training.metrics import ranking, softmax
from judge_training.model import build_optimizer, judge_to_train_further
from judge_training.pairs import Label
from judge_training.question_sets import Question, epoch, is_held_out, read_questions, trained_on
from judge_training.reader_command import export_run, reader_parser
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ewe.verification.answer_finder import MAX_TOKENS, MODEL

_BATCH, _LAYER_DECAY, _AVERAGED, _SMOOTHING = 64, 0.95, 0.995, 0.03
_WARMUP, _TAIL, _LEAST = 50, 0.7, 0.02  # steps; share of the run over which the rate falls; what is left of it
_WEIGHTS = (2.0, 1.0)  # of sentences that answer, and of the others, which are twice as many
_PROBED_S, _PROBED = 200, 250  # seconds between looks; questions of a source that are looked at


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = reader_parser(__doc__, "answers")
    parser.add_argument("--minutes", type=float, default=15.0)
    return parser.parse_args(arguments)


class Finder:
    """The judge that is trained further, and its tokenizer."""

    def __init__(self, seed: int) -> None:
        self.model, self.tokenizer = judge_to_train_further(seed)

    def loss(self, batch: dict[str, Tensor]) -> Tensor:
        """The mean cross-entropy of "answers" against the other two classes together."""
        is_other = (batch.pop("labels") != Label.SUPPORTED).long()
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(**batch).logits.float()
        sides = torch.stack([logits[:, 0], logits[:, 1:].logsumexp(-1)], -1)
        return cross_entropy(sides, is_other, weight=torch.tensor(_WEIGHTS), label_smoothing=_SMOOTHING)

    def figures(self, questions: Sequence[Question]) -> dict[str, list[float]]:
        """Per source: of how many questions with an answer, how often the likeliest sentence is one; and the area under
        the curve of its probability's telling that, questions without an answer among them.
        """
        found = {}
        for source in dict.fromkeys(one.source for one in questions):
            own = [one for one in questions if one.source == source][:_PROBED]
            pairs = [one.pair(place, Label.SUPPORTED) for one in own for place in range(len(one.sentences))]
            examples = encode(self.tokenizer, pairs, MAX_TOKENS)
            said = softmax(logits_of(self.model, examples, bfloat16=True))[:, Label.SUPPORTED]
            rows = np.split(said, np.cumsum([len(one.sentences) for one in own])[:-1])
            right = np.array([int(row.argmax()) in one.answers for row, one in zip(rows, own, strict=True)])
            answered = [bool(one.answers) for one in own]
            area = ranking(np.array([row.max() for row in rows]), right)
            found[source] = [sum(answered), round(float(right[answered].mean()), 3), round(float(area), 3)]
        return found


def train(args: argparse.Namespace) -> None:
    """Trains for so many minutes; the averaged weights are written on the way."""
    finder, questions = Finder(args.seed), read_questions(args.data)
    kept = [one for one in questions if is_held_out(one) and one.source != "squad"]  # whose other articles are reported
    optimizer, average = build_optimizer(finder.model, args.lr, _LAYER_DECAY), Average(finder.model, _AVERAGED)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    start = probed = time.monotonic()
    for step, batch in enumerate(_batches(finder, trained_on(questions), args.seed)):
        done = (time.monotonic() - start) / (60 * args.minutes)
        if done >= 1 or time.monotonic() - probed > _PROBED_S:
            probed = time.monotonic()
            shown = [one for one in kept if done >= 1 or one.source != "requests"]  # whole articles: long to read
            with average.in_place():
                print(step, round(done, 2), json.dumps(finder.figures(shown)), flush=True)
                export_reader(args.run_dir / "reader.safetensors", finder.model)
        if done >= 1:
            return
        finder.model.train()
        set_learning_rate([optimizer], min((step + 1) / _WARMUP, max(_LEAST, min(1.0, (1 - done) / _TAIL))))
        finder.loss(collate(batch)).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(finder.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average.update(step)


def _batches(finder: Finder, questions: Sequence[Question], seed: int) -> Iterator[list[Encoded]]:
    for number in count():
        encoded = encode(finder.tokenizer, epoch(questions, number), MAX_TOKENS)
        yield from training_batches(Random(f"{seed}/{number}"), encoded, _BATCH)


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.export:
        export_run(arguments.run_dir, MODEL)
    else:
        train(arguments)
