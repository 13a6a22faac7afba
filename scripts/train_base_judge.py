"""Trains the base judge: a LoRA adapter for a chat model, on the sets in ../shared/data and on pairs made of them.

Run by hand, on a GPU: `python scripts/train_base_judge.py --minutes 6`. Length is counted in minutes, not steps: the
learning rate warms up and falls as a cosine of the time that has passed. A run that was killed goes on where its last
checkpoint was. Writes the averaged adapter, its figures and every answer to the run's directory.
Data, model and figures are in scripts/judge_training/.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from builtin_training.checkpoint import load_checkpoint, save_checkpoint
from builtin_training.optim import Average, set_learning_rate
from judge_training.base_mixture import BaseCorpus, shard
from judge_training.base_model import BaseModel, load_tokenizer, training_batches
from judge_training.base_sets import Row, figures_of, fit, read_rows_of_all, shown
from judge_training.model import rate_at
from torch.nn.functional import cross_entropy
from transformers import PreTrainedTokenizerBase

from ewe.verification.judges.base import encode_pairs

ROOT = Path(__file__).resolve().parents[1]
_AHEAD = 2  # Shards per worker that are made before they are needed.
_SMOOTHING = 0.05
_PROGRESS = "progress.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """Prompts as token ids, and their labels."""

    ids: list[list[int]]
    labels: list[int]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="the chat model: a folder, or a GGUF file")
    parser.add_argument("--minutes", type=float, default=6.0, help="of training; loading and measuring come on top")
    parser.add_argument("--rank", type=int, default=16, help="of the adapter; its alpha is twice that")
    parser.add_argument("--lr", type=float, default=6e-4, help="peak learning rate")
    parser.add_argument("--dropout", type=float, default=0.05, help="before the adapter's matrices")
    parser.add_argument("--batch-tokens", type=int, default=32768, help="padded tokens per step")
    parser.add_argument("--max-tokens", type=int, default=448, help="per pair in training")
    parser.add_argument("--scale", type=float, default=1.0, help="share of all pairs, tests included (a trial: 0.01)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--run-dir", type=Path, default=ROOT / "runs" / "base-judge")
    return parser.parse_args(arguments)


class Shards:
    """Shards from worker processes, in order, from number `first` on; made ahead of their use."""

    def __init__(self, args: argparse.Namespace, tokenizer: PreTrainedTokenizerBase, first: int) -> None:
        self._args = args
        self._next = first
        # Forked workers share the corpus; they must be there before CUDA is.
        self._pool = ProcessPoolExecutor(
            args.workers,
            multiprocessing.get_context("fork"),
            _start_worker,
            (BaseCorpus.read(args.data), tokenizer),
        )
        self._waiting: list[Future[Shard]] = []
        self._fill()

    def __iter__(self) -> Iterator[Shard]:
        while True:
            made = self._waiting.pop(0).result()
            self._fill()
            yield made

    def close(self) -> None:
        """Ends the workers."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _fill(self) -> None:
        while len(self._waiting) < _AHEAD * self._args.workers:
            options = (self._args.seed, self._next, self._args.scale, self._args.max_tokens)
            self._waiting.append(self._pool.submit(_make_shard, *options))
            self._next += 1


_worker: tuple[BaseCorpus, PreTrainedTokenizerBase]


def _start_worker(corpus: BaseCorpus, tokenizer: PreTrainedTokenizerBase) -> None:
    global _worker
    _worker = (corpus, tokenizer)
    torch.set_num_threads(1)


def _make_shard(seed: int, number: int, scale: float, max_tokens: int) -> Shard:
    corpus, tokenizer = _worker
    pairs = shard(corpus, seed, number, scale)
    ids = encode_pairs(tokenizer, [(pair.evidence, pair.claim) for pair in pairs], max_tokens)
    kept = [row for row, one in enumerate(ids) if one]
    return Shard([ids[row] for row in kept], [int(pairs[row].label) for row in kept])


def read_progress(directory: Path) -> dict[str, Any]:
    """The shards done and the seconds spent by an earlier run in this directory."""
    path = directory / _PROGRESS
    return json.loads(path.read_text()) if path.exists() else {"shards": 0, "seconds": 0.0}


class Training:
    """The adapter, its optimizer, its average, and how far they are: steps, shards and seconds."""

    def __init__(self, args: argparse.Namespace, model: BaseModel) -> None:
        self.args, self.model = args, model
        fused = model.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(model.trained, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01, fused=fused)
        for group in self.optimizer.param_groups:
            group["peak_lr"] = args.lr
        self.average = Average(model.trained, 0.99)
        self.step, self.shards, self.seconds = 0, 0, 0.0
        self._told = (0.0, 0)  # Seconds when progress was last told, tokens since.
        self._checkpoint = args.run_dir / "checkpoint.safetensors"
        if self._checkpoint.exists():
            self.step = load_checkpoint(self._checkpoint, model.trained, [self.optimizer], self.average.tensors)
            told = read_progress(args.run_dir)
            self.shards, self.seconds = told["shards"], told["seconds"]

    def run(self, shards: Shards) -> None:
        """Steps until the minutes are over; a checkpoint after every minute's worth of shards."""
        began, saved = time.monotonic() - self.seconds, self.seconds
        for made in shards:
            lengths = [len(one) for one in made.ids]
            batches = training_batches(Random(f"{self.args.seed}/{self.shards}"), lengths, self.args.batch_tokens)
            for rows in batches:
                self.seconds = time.monotonic() - began
                if self.seconds >= 60 * self.args.minutes:
                    self.save()
                    return
                share = len(rows) * len(batches) / len(lengths)  # Every pair weighs the same, whatever its length.
                self._train_step([made.ids[row] for row in rows], [made.labels[row] for row in rows], share)
            self.shards += 1
            if self.seconds - saved > 60:
                self.save()
                saved = self.seconds

    def save(self) -> None:
        """Writes the checkpoint."""
        save_checkpoint(self._checkpoint, self.model.trained, [self.optimizer], self.average.tensors, self.step)
        (self.args.run_dir / _PROGRESS).write_text(json.dumps({"shards": self.shards, "seconds": self.seconds}))

    def _train_step(self, ids: list[list[int]], labels: list[int], share: float) -> None:
        self.model.peft.train()
        set_learning_rate([self.optimizer], rate_at(self.seconds / (60 * self.args.minutes)))
        logits = self.model.logits(ids)
        targets = torch.tensor(labels, device=logits.device)
        loss = cross_entropy(logits, targets, label_smoothing=_SMOOTHING)
        torch.autograd.backward(loss * share)
        torch.nn.utils.clip_grad_norm_(self.model.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.average.update(self.step)
        self.step += 1
        since, tokens = self._told
        self._told = (since, tokens + sum(map(len, ids)))
        if self.step % 20 == 0:
            right = (logits.argmax(-1) == targets).float().mean()
            pace = self._told[1] / max(1e-3, self.seconds - since)
            self._say(f"loss {loss.item():.3f} right {right.item():.2f} pairs {len(ids)} tokens/s {pace:.0f}")
            self._told = (self.seconds, 0)

    def _say(self, text: str) -> None:
        used = torch.cuda.max_memory_allocated() / 2**30 if self.model.device.type == "cuda" else 0.0
        print(f"{self.seconds:6.1f} s step {self.step} shard {self.shards} {text} {used:.1f} GiB", flush=True)


def measure(args: argparse.Namespace, training: Training) -> None:
    """Writes the averaged adapter, figures.json and answers.json (logits of every pair measured, in order)."""
    model = training.model
    with training.average.in_place():
        model.save(args.run_dir / "adapter")
        rows = read_rows_of_all(args.data, args.scale)
        logits = model.read(encode_pairs(model.tokenizer, shown(rows), 512))
    calibration = fit(rows, logits)
    done = {"steps": training.step, "shards": training.shards, "seconds": round(training.seconds)}
    figures = {**asdict(calibration), **done, **figures_of(rows, logits, calibration)}
    text = json.dumps(figures, indent=2)
    (args.run_dir / "figures.json").write_text(text + "\n")
    answers = [_answer(row, values) for row, values in zip(rows, logits.tolist(), strict=True)]
    (args.run_dir / "answers.json").write_text(json.dumps(answers))
    print(text, flush=True)


def _answer(row: Row, logits: list[float]) -> list[object]:
    return [row.name, row.kind, row.item, int(row.pair.label), *(round(value, 3) for value in logits)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, or goes on training, and measures."""
    args = parse_arguments(arguments)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    args.run_dir.mkdir(parents=True, exist_ok=True)
    shards = Shards(args, load_tokenizer(args.model), read_progress(args.run_dir)["shards"])
    model = BaseModel.load(args.model, rank=args.rank, dropout=args.dropout, seed=args.seed, device=args.device)
    training = Training(args, model)
    training.run(shards)
    shards.close()
    measure(args, training)


if __name__ == "__main__":
    main()
