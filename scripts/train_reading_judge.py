"""Trains a judge that reads passages together: a LoRA adapter for a chat model, on claims in words of their own.

Run by hand: `python scripts/train_reading_judge.py --model FOLDER --run-dir runs/NAME --minutes 60`. Length is counted
in minutes: the learning rate warms up and falls with the time that has passed. A run that was killed goes on where its
last checkpoint was. Claims share the encoding of their passages (`judge_training.packed_model`), so a CPU can do it;
on a GPU give --device cuda, --workers and --batch-tokens, and train one model at a time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from builtin_training.checkpoint import load_checkpoint, save_checkpoint
from builtin_training.optim import Average, set_learning_rate
from judge_training.claim_corpus import WRITTEN, Corpus
from judge_training.claim_packs import MAX_CHARACTERS, manifest_of
from judge_training.model import rate_at
from judge_training.packed_model import PackedModel
from judge_training.paired_model import PairedModel
from judge_training.reading_batches import Batch, Batches, HeldOut, length_of, split
from judge_training.reading_figures import answers, calibrated, figures
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader

from ewe.verification.judges.checkpoints import JUDGE_SETTINGS

ROOT = Path(__file__).resolve().parents[1]
_SMOOTHING = 0.05
_PROGRESS = "progress.json"
_MAX_TOKENS = 768  # Of a prompt.


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    trained = parser.add_mutually_exclusive_group(required=True)
    trained.add_argument("--model", type=Path, help="the chat model: a folder, or a GGUF file")
    trained.add_argument("--encoder", type=Path, help="or all weights of a judge in the built-in one's layout")
    parser.add_argument("--name", help="what the adapter calls its model: a hub id, or the name of a known model")
    parser.add_argument("--adapter", type=Path, help="go on from this adapter")
    parser.add_argument("--minutes", type=float, default=60.0, help="of training; loading and measuring come on top")
    parser.add_argument("--rank", type=int, default=16, help="of a new adapter; its alpha is twice that")
    parser.add_argument("--first-layer", type=int, default=0, help="that is trained; fewer layers train faster")
    parser.add_argument("--lr", type=float, default=3e-4, help="peak learning rate")
    parser.add_argument("--batch-claims", type=int, default=48, help="claims per step, at least")
    parser.add_argument("--batch-tokens", type=int, default=1, help="padded tokens in a pass; 1: one pack at a time")
    parser.add_argument(
        "--retrieved", type=float, default=0.3, help="share of the claims that stand alone, too, beside what is found"
    )
    parser.add_argument("--workers", type=int, default=0, help="processes that make batches beside the training")
    parser.add_argument("--average", type=float, default=0.97, help="decay of the averaged weights, per step")
    parser.add_argument("--print-every", type=int, default=1, help="steps between lines of progress")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--bfloat16", action="store_true", help="on a CPU that multiplies it; a GPU always does")
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

    def __init__(self, args: argparse.Namespace, model: PackedModel | PairedModel) -> None:
        self.args, self.model = args, model
        self.corpus = Corpus.read(args.data, args.written)
        self.held_out = HeldOut(self.corpus)
        self.optimizer = torch.optim.AdamW(model.trained, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01)
        for group in self.optimizer.param_groups:
            group["peak_lr"] = args.lr
        self.average = Average(model.trained, args.average)
        self.step, self.seconds = 0, 0.0
        self._checkpoint = args.run_dir / "checkpoint.safetensors"
        if self._checkpoint.exists():
            self.step = load_checkpoint(self._checkpoint, model.trained, [self.optimizer], self.average.tensors)
            self.seconds = json.loads((args.run_dir / _PROGRESS).read_text())["seconds"]

    def run(self) -> None:
        """Steps until the minutes are over; a checkpoint every two minutes."""
        args = self.args
        dataset = Batches(
            self.corpus, self.model.ids, args.seed, args.batch_claims, self.step, retrieved=args.retrieved
        )
        batches = DataLoader(dataset, batch_size=None, num_workers=args.workers)
        began, saved, looked = time.monotonic() - self.seconds, self.seconds, self.seconds
        for batch in batches:
            self.seconds = time.monotonic() - began
            if self.seconds >= 60 * args.minutes:
                break
            self._step(batch)
            if self.seconds - saved > 120:
                saved = self.seconds
                self.save()
            if self.seconds - looked > 60 * args.measure_every:
                looked = self.seconds
                self.look()
                began += time.monotonic() - began - self.seconds
        self.save()

    def save(self) -> None:
        """Writes the checkpoint."""
        save_checkpoint(self._checkpoint, self.model.trained, [self.optimizer], self.average.tensors, self.step)
        (self.args.run_dir / _PROGRESS).write_text(json.dumps({"seconds": self.seconds}))

    def look(self) -> None:
        """Prints figures of the averaged adapter on the held-out articles, and writes it."""
        shown, found = self.held_out.packs(self.args.measure_packs)
        with self.average.in_place():
            self.model.save(self.args.run_dir / "adapter", self.args.name)
            manifest = json.dumps(manifest_of(self.corpus), indent=1, ensure_ascii=False)
            (self.args.run_dir / "adapter" / "manifest.json").write_text(manifest + "\n", encoding="utf-8")
            rows = {"given": answers(self.model, shown), "retrieved": answers(self.model, found)}
        (self.args.run_dir / "answers.json").write_text(json.dumps(rows))
        limits = {"max_tokens": _MAX_TOKENS, "max_characters": MAX_CHARACTERS}
        settings = {**calibrated(rows["retrieved"]), **limits}
        (self.args.run_dir / "adapter" / JUDGE_SETTINGS).write_text(json.dumps(settings) + "\n")
        for name, own in rows.items():
            print(json.dumps({"step": self.step, "passages": name, "claims": len(own), **figures(own)}), flush=True)

    def _step(self, batch: Batch) -> None:
        self.model.module.train()
        set_learning_rate([self.optimizer], rate_at(self.seconds / (60 * self.args.minutes)))
        batch = sorted(batch, key=lambda one: length_of(one[0]))
        targets = torch.tensor([label for _, labels in batch for label in labels], device=self.model.device)
        right, lost, done = torch.zeros((), device=self.model.device), torch.zeros((), device=self.model.device), 0
        for part in split(batch, self.args.batch_tokens):
            logits = self.model.logits([ids for ids, _ in part])
            own = targets[done : done + len(logits)]
            done += len(logits)
            loss = cross_entropy(logits, own, label_smoothing=_SMOOTHING, reduction="sum") / len(targets)
            torch.autograd.backward(loss)
            right += (logits.argmax(-1) == own).sum()
            lost += loss.detach()
        torch.nn.utils.clip_grad_norm_(self.model.trained, 1.0)
        for parameter in self.model.trained:
            if parameter.grad is not None:
                parameter.grad.nan_to_num_(0.0, 0.0, 0.0)  # One bad batch must not end a run; asking first would wait.
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update(self.step)
        self.step += 1
        if self.step % self.args.print_every == 0:
            shares = f"loss {lost.item():.3f} right {right.item() / len(targets):.2f}"
            print(f"{self.seconds:7.1f} s step {self.step} {shares}", flush=True)


def load_model(args: argparse.Namespace) -> PackedModel | PairedModel:
    """The chat model with an adapter, or the encoder."""
    if args.encoder:
        return PairedModel(args.encoder, args.seed, args.device)
    return PackedModel.load(
        args.model, args.adapter, args.rank, args.first_layer, args.seed, args.device, args.bfloat16
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, or goes on training, and measures."""
    args = parse_arguments(arguments)
    args.run_dir.mkdir(parents=True, exist_ok=True)
    training = Training(args, load_model(args))
    training.run()
    training.args.measure_packs = 10_000
    training.look()


if __name__ == "__main__":
    main()
