"""The sets that the judge is measured on, and its figures on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from judge_training.metrics import balanced_accuracy, calibration_error, macro_f1
from judge_training.neighbours import irrelevant_pairs
from judge_training.pairs import Label, Pair, share_of

Judge = Callable[[Sequence[Pair]], NDArray[np.float32]]


def fever_mix(test: Sequence[Pair]) -> list[Pair]:
    """Held-back FEVER and, half as many, its claims beside what BM25 finds for them on other pages: a third each."""
    apart = irrelevant_pairs(Random("mix"), test, first=True)
    return [*test, *Random("mix").sample(apart, min(len(apart), len(test) // 2))]


def fool_me_twice_mix(rows: Sequence[tuple[int, Pair, tuple[str, ...]]]) -> dict[int, list[Pair]]:
    """Per fold, the claims with their evidence, and every second one beside the first retrieved sentence of the same
    page that is not its evidence.
    """
    mixes: dict[int, list[Pair]] = {}
    for fold, pair, others in rows:
        mix = mixes.setdefault(fold, [])
        mix.append(pair)
        if others and share_of(pair.claim, "mix") < 0.5:
            mix.append(replace(pair, evidence=others[0], label=Label.INCONCLUSIVE))
    return mixes


def calibration_half(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """(pairs to set the temperature on, pairs to measure on), by group."""
    chosen = [share_of(pair.group, "calibration") < 0.5 for pair in pairs]
    return [p for p, c in zip(pairs, chosen, strict=True) if c], [
        p for p, c in zip(pairs, chosen, strict=True) if not c
    ]


def figures_of(judge: Judge, sets: Mapping[str, Sequence[Pair]]) -> dict[str, float]:
    """Per set, balanced accuracy of supported against refuted; where the third class is met, macro-F1 and the
    calibration error too.
    """
    figures: dict[str, float] = {}
    for name, pairs in sets.items():
        probabilities = judge(pairs)
        labels = np.array([int(pair.label) for pair in pairs])
        settled = labels != Label.INCONCLUSIVE
        figures[f"{name} balanced accuracy"] = balanced_accuracy(probabilities[settled], labels[settled])
        if not settled.all():
            figures[f"{name} macro-F1"] = macro_f1(probabilities, labels)
            figures[f"{name} calibration error"] = calibration_error(probabilities, labels)
    return {key: round(value, 4) for key, value in figures.items()}
