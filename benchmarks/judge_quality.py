"""How well judges judge: the built-in one, and any cross-encoder named with --judge.

Sets: people of the built-in world who are in no training (always there), and, where ../shared/data is, FEVER as held
back by the training (scripts/judge_training/sources.py), FEVER-Symmetric dev, and two mixes with a third of retrieved
evidence that does not settle the claim: held-back FEVER with BM25's best sentence of another page, and Fool-Me-Twice
with another sentence of the same page. The built-in judge is trained on Fool-Me-Twice: its figures there are no test
(those of its cross-validation are in its card). Balanced accuracy is that of supported against refuted, of the two
the likelier one; macro-F1 is over three classes; calibration error in 15 bins.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import ROOT, parse_arguments, report
from ewe.verification import load_judge
from ewe.verification.judges.protocol import Judge

sys.path.insert(0, str(ROOT / "scripts"))

from judge_training.figures import fever_mix, figures_of, fool_me_twice_mix
from judge_training.pairs import Pair
from judge_training.sources import read_fever, read_fool_me_twice, read_symmetric
from judge_training.world_pairs import world_pairs

_WORLD_PAIRS = 2000
_SMOKE_PAIRS = 12


def read_sets(data: Path, smoke: bool) -> dict[str, list[Pair]]:
    """The sets by name; that of the world alone where `data` is missing, and in a smoke run."""
    size = _SMOKE_PAIRS if smoke else _WORLD_PAIRS
    sets = {"world": list(islice(world_pairs(Random("judge quality"), "test"), size))}
    if smoke or not (data / "fever").exists():
        return sets
    sets["fever"] = fever_mix(read_fever(data).test)
    sets["symmetric"] = read_symmetric(data)
    sets["fool me twice"] = [pair for mix in fool_me_twice_mix(read_fool_me_twice(data)).values() for pair in mix]
    return sets


def ask(judge: Judge, pairs: Sequence[Pair]) -> NDArray[np.float32]:
    """The judge's probabilities [n, 3]."""
    shown = [pair.under_title() for pair in pairs]
    return judge.judge([(pair.evidence, pair.claim) for pair in shown])


def print_table(figures: dict[str, dict[str, float]]) -> None:
    """One row per figure, one column per judge."""
    rows = list(dict.fromkeys(row for column in figures.values() for row in column))
    print(f"{'':36}" + "".join(f"{name[-24:]:>26}" for name in figures))
    for row in rows:
        print(f"{row:36}" + "".join(f"{column[row]:26.3f}" for column in figures.values()))
    print()


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--judge", action="append", default=[], help="one more judge: a folder, hub id, endpoint")
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")

    arguments = parse_arguments(__doc__, add)
    sets = read_sets(arguments.data, arguments.smoke)
    table = {}
    for name in ["builtin", *arguments.judge]:
        judge = load_judge(name, device=arguments.device)
        table[name] = figures_of(partial(ask, judge), sets)
    print_table(table)
    settings = {"pairs": {name: len(pairs) for name, pairs in sets.items()}}
    figures = {f"{name}: {key}": value for name, column in table.items() for key, value in column.items()}
    report("judge_quality", arguments, settings, figures)


if __name__ == "__main__":
    main()
