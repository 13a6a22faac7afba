"""Trains what notices that a newer statement changes an older one: the finder, and the reader.

Run by hand: `PYTHONPATH=. python scripts/train_change_reader.py`, a quarter of an hour an epoch on two cores. After
every epoch finder, reader and figures on what is kept apart (the last tenth of each file of pairs, one history and one
profile in eight) are in the run's folder. Then `--export` writes the package's files.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import torch
from change_training.finder_training import Finder, export_finder, train_finder
from change_training.reader_training import (
    ReaderModel,
    as_facts,
    beside_others,
    build_optimizer,
    drawn,
    from_histories,
    from_profiles,
    train_epoch,
)
from change_training.statements import (
    AGAIN,
    APART,
    CHANGED,
    Pair,
    Statements,
    benchmark_pairs,
    histories,
    profiles,
    small_talk,
    written_pairs,
)
from change_training.values import value_pairs
from numpy.typing import NDArray

from ewe.longterm.change.change_reading import MODEL
from ewe.longterm.change.change_search import MOST_READ
from ewe.verification.judges.checkpoints import builtin_path

_VALUE_PAIRS = 700  # per epoch
_KEPT_APART = 8  # one history or profile in so many
# Chosen on what is kept apart and on one conversation of LoCoMo (two for facts), in which nearly nothing changes.
_THRESHOLDS = {"again": 0.5, "changed": {"statement": 0.9, "turn": 0.94, "fact": 0.96}}
_SHARES = {"changed": 0.03, "again": 0.02}  # of what holds side by side, the share that may be taken for it


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=1e-4, help="peak learning rate")
    parser.add_argument("--start", type=Path, help="a reader.safetensors to go on from, and to average with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run-dir", type=Path, default=Path("runs") / "change")
    parser.add_argument("--export", type=Path, nargs="?", const=MODEL, help="write the files of this run, no training")
    return parser.parse_args(arguments)


class Material:
    """What there is to train on, and what is kept apart to choose thresholds on."""

    def __init__(self) -> None:
        written, told = written_pairs(), histories()
        kept = {pair.older for pair in last_of_each_group(written)}
        self.pairs = [pair for pair in written if pair.older not in kept] + benchmark_pairs()
        self.kept_pairs = [pair for pair in written if pair.older in kept]
        self.histories = [one for number, one in enumerate(told) if number % _KEPT_APART]
        self.kept_histories = told[::_KEPT_APART]
        found = profiles()
        self.profiles = [one for number, one in enumerate(found) if number % _KEPT_APART]
        self.kept_profiles = [pair for one in found[::_KEPT_APART] for pair in one]
        self.talk = small_talk()

    def finder(self) -> Finder:
        """Trained on the pairs and the histories' pairs that are not apart."""
        told = [pair for one in self.histories for pair in one.pairs() if pair.label != APART]
        return train_finder(builtin_path(), self.pairs + told, [pair.newer for pair in self.pairs])


def last_of_each_group(pairs: Sequence[Pair]) -> list[Pair]:
    """The last tenth of each file."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    return [pair for group in groups.values() for pair in group[len(group) - len(group) // 10 :]]


@torch.no_grad()
def closest(finder: Finder, history: Statements) -> list[Pair]:
    """Per statement of a history the pairs with the earlier ones that the reader would be shown."""
    older, newer = (finder(history.texts, side) for side in (finder.older, finder.newer))
    close: dict[str, list[tuple[float, Pair]]] = {}
    places = {text: place for place, text in enumerate(history.texts)}
    for pair in history.pairs():
        score = float(older[places[pair.older]] @ newer[places[pair.newer]])
        close.setdefault(pair.newer, []).append((score, pair))
    best = (sorted(rows, key=lambda row: -row[0])[:MOST_READ] for rows in close.values())
    return [pair for rows in best for _, pair in rows]


def train(args: argparse.Namespace) -> None:
    """Trains, and writes finder and reader to the run's folder after every epoch."""
    material, folder = Material(), args.run_dir
    folder.mkdir(parents=True, exist_ok=True)
    finder = material.finder()
    export_finder(finder, folder / "finder.safetensors")
    shown = {one.group: closest(finder, one) for one in material.histories}
    with torch.no_grad():
        older, newer = (finder([getattr(pair, name) for pair in material.pairs], side) for name, side in finder.sides)
        close = (newer @ older.T).numpy()
    apart = {group: [pair for pair in pairs if pair.label == APART] for group, pairs in shown.items()}
    reader = ReaderModel(args.seed)
    if args.start:
        reader.load(args.start)
    optimizer, random = build_optimizer(reader, args.lr), Random(args.seed)
    for epoch in range(args.epochs):
        told = from_histories(material.histories, apart, random) + beside_others(material.pairs, close, random)
        told += as_facts(told + material.pairs, random) + value_pairs(_VALUE_PAIRS, random)
        told += from_profiles(material.profiles, random)
        rows = drawn(material.pairs + told, material.talk, random)
        loss = train_epoch(reader, optimizer, rows, epoch / args.epochs, 1 / args.epochs)
        if args.start and epoch + 1 == args.epochs:
            reader.average_with(args.start)
        reader.export(folder / "reader.safetensors")
        print(f"epoch {epoch + 1}: {len(rows)} pairs, loss {loss:.3f}", flush=True)
        line = json.dumps(figures(reader, material, finder))
        with (folder / "figures.jsonl").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        print(line, flush=True)


def figures(reader: ReaderModel, material: Material, finder: Finder) -> dict[str, float]:
    """Of what was kept apart: the shares found while few of what is apart are taken for it, and from where."""
    shown = [pair for one in material.kept_histories for pair in closest(finder, one)]
    found: dict[str, float] = {}
    for name, pairs in (("pairs", material.kept_pairs), ("histories", shown), ("profiles", material.kept_profiles)):
        if pairs:
            scores, labels = reader.probabilities(pairs), np.array([pair.label for pair in pairs])
            for label, word in ((CHANGED, "changed"), (AGAIN, "again")):
                limit = threshold(scores[:, label], labels == APART, _SHARES[word])
                found[f"{name}: {word}"] = round(float((scores[labels == label, label] >= limit).mean()), 3)
                found[f"{name}: {word}, from"] = round(limit, 3)
    return found


def export(folder: Path, run: Path) -> None:
    """Writes the package's files from those of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("finder.safetensors", "reader.safetensors"):
        shutil.copyfile(run / name, folder / name)
    (folder / "thresholds.json").write_text(json.dumps(_THRESHOLDS, indent=1) + "\n", encoding="utf-8")


def threshold(scores: NDArray[np.float32], apart: NDArray[np.bool_], share: float) -> float:
    """The probability that only this share of the pairs that are apart reaches."""
    return float(np.quantile(scores[apart], 1 - share)) + 1e-4


if __name__ == "__main__":
    arguments = parse_arguments()
    if arguments.export:
        export(arguments.export, arguments.run_dir)
    else:
        train(arguments)
