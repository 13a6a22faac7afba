"""Trains a judge that reads passages together: a LoRA adapter for a chat model, on claims in words of their own.

Run by hand: `python scripts/train_reading_judge.py --model FOLDER --run-dir runs/NAME --minutes 60`. Length is counted
in minutes: the learning rate warms up and falls with the time that has passed. A run that was killed goes on where its
last checkpoint was. Runs on a CPU: claims share the encoding of their passages (`judge_training.packed_model`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import torch
from builtin_training.checkpoint import load_checkpoint, save_checkpoint
from builtin_training.optim import Average, set_learning_rate
from judge_training.claim_corpus import WRITTEN, Corpus, Pack
from judge_training.claim_packs import manifest_of, packs
from judge_training.metrics import ranking
from judge_training.model import rate_at
from judge_training.packed_model import PackedModel
from torch.nn.functional import cross_entropy

from ewe.verification.judges.checkpoints import JUDGE_SETTINGS

ROOT = Path(__file__).resolve().parents[1]
_SMOOTHING = 0.05
_PROGRESS = "progress.json"
_MAX_TOKENS, _MAX_CHARACTERS = 768, 1800
"""What the judge is shown at most: of a prompt, and of the passages in it."""
_SHARD = 400  # Packs after which the claims are read and shuffled anew.


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="the chat model: a folder, or a GGUF file")
    parser.add_argument("--name", help="what the adapter calls its model: a hub id, or the name of a known model")
    parser.add_argument("--adapter", type=Path, help="go on from this adapter")
    parser.add_argument("--minutes", type=float, default=60.0, help="of training; loading and measuring come on top")
    parser.add_argument("--rank", type=int, default=16, help="of a new adapter; its alpha is twice that")
    parser.add_argument(
        "--first-layer", type=int, default=0, help="that a new adapter changes; fewer layers train faster"
    )
    parser.add_argument("--lr", type=float, default=3e-4, help="peak learning rate")
    parser.add_argument("--batch-claims", type=int, default=48, help="claims per step, at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--measure-every", type=float, default=15.0, help="minutes between looks at the held-out articles"
    )
    parser.add_argument("--measure-packs", type=int, default=40, help="of these articles, per look")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--written", type=Path, default=WRITTEN, help="folder of claims written by reading")
    parser.add_argument("--run-dir", type=Path, default=ROOT / "runs" / "reading-judge")
    return parser.parse_args(arguments)


class Training:
    """The adapter, its optimizer, its average, and how far they are."""

    def __init__(self, args: argparse.Namespace, model: PackedModel) -> None:
        self.args, self.model = args, model
        self.optimizer = torch.optim.AdamW(model.trained, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01)
        for group in self.optimizer.param_groups:
            group["peak_lr"] = args.lr
        self.average = Average(model.trained, 0.97)
        self.step, self.packs, self.seconds = 0, 0, 0.0
        self._checkpoint = args.run_dir / "checkpoint.safetensors"
        if self._checkpoint.exists():
            self.step = load_checkpoint(self._checkpoint, model.trained, [self.optimizer], self.average.tensors)
            done = json.loads((args.run_dir / _PROGRESS).read_text())
            self.packs, self.seconds = done["packs"], done["seconds"]

    def run(self) -> None:
        """Steps until the minutes are over; a checkpoint every two minutes."""
        began, saved, looked = time.monotonic() - self.seconds, self.seconds, self.seconds
        for batch in self._batches():
            self.seconds = time.monotonic() - began
            if self.seconds >= 60 * self.args.minutes:
                break
            self._step(batch)
            if self.seconds - saved > 120:
                saved = self.seconds
                self.save()
            if self.seconds - looked > 60 * self.args.measure_every:
                looked = self.seconds
                self.look()
                began += time.monotonic() - began - self.seconds
        self.save()

    def save(self) -> None:
        """Writes the checkpoint."""
        save_checkpoint(self._checkpoint, self.model.trained, [self.optimizer], self.average.tensors, self.step)
        (self.args.run_dir / _PROGRESS).write_text(json.dumps({"packs": self.packs, "seconds": self.seconds}))

    def look(self) -> None:
        """Prints figures of the averaged adapter on the held-out articles, and writes it."""
        corpus = Corpus.read(self.args.data, self.args.written)
        held_out = packs(corpus, 0, held_out=True)[: self.args.measure_packs]
        with self.average.in_place():
            self.model.save(self.args.run_dir / "adapter", self.args.name)
            manifest = json.dumps(manifest_of(corpus), indent=1, ensure_ascii=False)
            (self.args.run_dir / "adapter" / "manifest.json").write_text(manifest + "\n", encoding="utf-8")
            rows = answers(self.model, held_out)
        (self.args.run_dir / "answers.json").write_text(json.dumps(rows))
        settings = {"temperature": temperature_of(rows), "max_tokens": _MAX_TOKENS, "max_characters": _MAX_CHARACTERS}
        (self.args.run_dir / "adapter" / JUDGE_SETTINGS).write_text(json.dumps(settings) + "\n")
        print(json.dumps({"step": self.step, "claims": len(rows), **figures(rows)}), flush=True)

    def _batches(self) -> Iterator[list[Pack]]:
        """Batches from where the run stands, in shards of an epoch each: what is written meanwhile joins in."""
        for shard in count(self.packs // _SHARD):
            order = packs(Corpus.read(self.args.data, self.args.written), 1000 * self.args.seed + shard)
            batch: list[Pack] = []
            for pack in order[self.packs % _SHARD : _SHARD]:
                batch.append(pack)
                if sum(len(one.claims) for one in batch) >= self.args.batch_claims:
                    yield batch
                    self.packs += len(batch)
                    batch = []
            self.packs = (shard + 1) * _SHARD

    def _step(self, batch: Sequence[Pack]) -> None:
        self.model.peft.train()
        set_learning_rate([self.optimizer], rate_at(self.seconds / (60 * self.args.minutes)))
        total, right, lost = sum(len(pack.claims) for pack in batch), 0, 0.0
        for pack in batch:
            logits = self.model.logits(pack)
            targets = torch.tensor([int(claim.label) for claim in pack.claims])
            loss = cross_entropy(logits, targets, label_smoothing=_SMOOTHING, reduction="sum") / total
            torch.autograd.backward(loss)
            right += int((logits.argmax(-1) == targets).sum())
            lost += loss.item()
        torch.nn.utils.clip_grad_norm_(self.model.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update(self.step)
        self.step += 1
        print(
            f"{self.seconds:7.1f} s step {self.step} packs {self.packs} loss {lost:.3f} right {right / total:.2f}",
            flush=True,
        )


@torch.inference_mode()
def answers(model: PackedModel, held_out: Sequence[Pack]) -> list[list[object]]:
    """Per claim its source, kind, label and logits."""
    model.peft.eval()
    rows: list[list[object]] = []
    for pack in held_out:
        logits = model.logits(pack).tolist()
        rows += [
            [c.source, c.kind, int(c.label), *(round(v, 3) for v in one)]
            for c, one in zip(pack.claims, logits, strict=True)
        ]
    return rows


def temperature_of(rows: Sequence[Sequence[object]]) -> float:
    """What divides the logits of rows of `answers` with the least loss."""
    labels = torch.tensor([int(str(row[2])) for row in rows])
    logits = torch.tensor([[float(str(value)) for value in row[3:]] for row in rows])
    candidates = np.arange(0.5, 3.01, 0.05).tolist()
    return round(min(candidates, key=lambda value: float(cross_entropy(logits / value, labels))), 2)


def figures(rows: Sequence[Sequence[object]]) -> dict[str, float]:
    """Accuracy of three ways, areas under the curve, and shares at the most likely answer."""
    labels = np.array([row[2] for row in rows])
    logits = np.array([row[3:] for row in rows], float)
    shares = np.exp(logits - logits.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    guesses = shares.argmax(1)
    sides = labels < 2
    values = {
        "accuracy": np.mean(guesses == labels),
        "AUC true/false": ranking(logits[sides, 0] - logits[sides, 1], labels[sides] == 0),
        "AUC supported/rest": ranking(shares[:, 0], labels == 0),
        "AUC refuted/rest": ranking(shares[:, 1], labels == 1),
        "loss": float(-np.log(shares[np.arange(len(labels)), labels]).mean()),
    }
    for label, name in enumerate(("true", "false", "open")):
        values |= {
            f"{name} s": np.mean(guesses[labels == label] == 0),
            f"{name} r": np.mean(guesses[labels == label] == 1),
        }
    return {key: round(float(value), 3) for key, value in values.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, or goes on training, and measures."""
    args = parse_arguments(arguments)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    training = Training(args, PackedModel.load(args.model, args.adapter, args.rank, args.first_layer, args.seed))
    training.run()
    training.args.measure_packs = 10_000
    training.look()


if __name__ == "__main__":
    main()
