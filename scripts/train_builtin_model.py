"""Trains the built-in model from scratch on generated lessons, with the EWE attention itself.

Run by hand: `python scripts/train_builtin_model.py`; a run that was killed goes on where its last checkpoint was.
Data, attention, optimizers, checkpoints and probes are in scripts/builtin_training/.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from builtin_training import attention
from builtin_training.batch import Batch
from builtin_training.checkpoint import export_model, load_checkpoint, save_checkpoint
from builtin_training.data import BatchSettings, batches
from builtin_training.examples import LessonExamples
from builtin_training.model import GUIDE_WEIGHT, build_model, load_or_train_tokenizer, load_weights, losses_and_hits
from builtin_training.optim import Average, build_optimizers, schedule, set_learning_rate
from builtin_training.probe import probe

ROOT = Path(__file__).resolve().parents[1]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--steps", type=int, default=12000, help="optimizer steps in all")
    parser.add_argument("--examples", type=int, default=56, help="answers per step (or a few more)")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1_000_000, help="seed of weights and lessons")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--matrix-lr", type=float, default=0.02)
    parser.add_argument("--other-lr", type=float, default=1.5e-3)
    parser.add_argument("--save-minutes", type=float, default=5.0)
    parser.add_argument("--probe-minutes", type=float, default=10.0, help="every so often: probe and export")
    parser.add_argument("--run-dir", type=Path, default=ROOT / "runs" / "builtin")
    parser.add_argument("--start-from", type=Path, help="model directory with the weights to begin with")
    parser.add_argument("--model-dir", type=Path, default=ROOT / "ewe" / "evaluation" / "world" / "model")
    return parser.parse_args(arguments)


class Run:
    """One training run: model, optimizers, and how far it is."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.settings = BatchSettings(examples=args.examples, seed=args.seed)
        self.tokenizer = load_or_train_tokenizer(args.run_dir / "tokenizer", args.seed)
        torch.manual_seed(args.seed)
        self.model = build_model(self.tokenizer, args.layers, args.width).to(args.device)
        self.optimizers = build_optimizers(self.model, args.matrix_lr, args.other_lr)
        self.examples = LessonExamples(self.tokenizer, self.settings.unit_tokens)
        self.checkpoint = args.run_dir / "checkpoint.safetensors"
        self.average = Average(self.model)
        self.step = 0
        if args.start_from:
            load_weights(self.model, args.start_from)
        if self.checkpoint.exists():
            self.step = load_checkpoint(self.checkpoint, self.model, self.optimizers, self.average.tensors)

    def train_step(self, batch: Batch) -> torch.Tensor:
        """One optimizer step; returns [loss, guiding losses, share of copied tokens right, gradient norm]."""
        set_learning_rate(self.optimizers, schedule(self.step / self.args.steps))
        loss, guide, accuracy = losses_and_hits(self.model, batch, self.args.device)
        guiding = [guide.loss(kind) for kind in guide.heads]
        torch.autograd.backward(loss + GUIDE_WEIGHT * sum(guiding))
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.average.update(self.step)
        self.step += 1
        return torch.stack([part.detach() for part in (loss, *guiding, accuracy, norm)])

    def save(self) -> None:
        """Writes the checkpoint."""
        save_checkpoint(self.checkpoint, self.model, self.optimizers, self.average.tensors, self.step)

    def probe_and_export(self) -> None:
        """Measures copying on lessons that training does not see, and writes the model directory."""
        with self.average.in_place():
            print(probe(self.model, self.tokenizer, self.settings.unit_tokens, 40, self.args.device), flush=True)
            export_model(self.args.model_dir, self.model, self.tokenizer, torch.bfloat16)

    def run(self) -> None:
        """All steps that are left."""
        saved = probed = told = time.monotonic()
        totals, count, tokens = torch.zeros(6), 0, 0
        stopped = False

        def stop(*_: object) -> None:
            nonlocal stopped
            stopped = True

        signal.signal(signal.SIGTERM, stop)
        for batch in batches(self.examples, self.settings, self.step, self.args.steps):
            if stopped:
                break
            totals += self.train_step(batch).cpu()
            count += 1
            tokens += batch.input_ids.numel()
            now = time.monotonic()
            if self.step % 20 == 0:
                loss, *guiding, accuracy, norm = (totals / count).tolist()
                clock = time.strftime("%H:%M:%S")
                print(
                    f"{clock} step {self.step}/{self.args.steps} loss {loss:.3f} guiding "
                    f"{' '.join(f'{part:.3f}' for part in guiding)} copied tokens {accuracy:.1%} norm {norm:.2f} "
                    f"{tokens / (now - told):.0f} tokens/s",
                    flush=True,
                )
                totals, count, tokens, told = torch.zeros(6), 0, 0, now
            if now - saved > self.args.save_minutes * 60:
                self.save()
                saved = now
            if now - probed > self.args.probe_minutes * 60:
                self.probe_and_export()
                probed = now
        self.save()
        if not stopped:
            self.probe_and_export()


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, or goes on training, and exports the model."""
    args = parse_arguments(arguments)
    torch.set_num_threads(args.threads)
    attention.register()
    args.run_dir.mkdir(parents=True, exist_ok=True)
    Run(args).run()


if __name__ == "__main__":
    main()
