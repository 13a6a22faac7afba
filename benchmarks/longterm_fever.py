"""Is a claim's factuality right after k pieces of evidence? And do verdicts gain by weighing evidence with it?

Time: claims of Fool Me Twice, each remembered at a factuality of 0.5. Sentences of its page, those that settle it among
them, arrive in a drawn order, one a day; the judge reads each, and the factuality moves by VeriMem's updates: ours, and
as verimem-a.txt and verimem-b.txt print them. Beside them what the last piece alone says, and the majority of all so
far. Figures: Brier score (less is better) and AUC of "the claim is true" after k pieces; paired differences with 95%
intervals. Everything but the order is real text.

Prior: claims of FEVER Symmetric, each with a piece of evidence for it and one against it. Two sources tell one each, of
stated reliabilities 0.9 and 0.5; the more reliable one is right in nine of ten, as these numbers say. A verdict is the
side with more of the judge's probability, as it is or times the source's reliability. Alone: one source of 0.5 to 0.9,
which is right; a side needs 0.5. Who tells what is drawn; the texts and the judge's mistakes are real.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import ROOT, parse_arguments, report
from ewe.evaluation.tables import Interval
from ewe.longterm.records import Memory, MemorySource
from ewe.longterm.scoring.forms import VeracityUpdate, averaged, bayesian, bayesian_as_written
from ewe.verification.judges.load import load_judge
from ewe.verification.judges.protocol import INCONCLUSIVE, REFUTED, SUPPORTED, Judge

Claim = tuple[str, bool, Sequence[str]]
"""A claim, whether it is true, and its evidence in the order in which it arrives."""
Curve = Callable[[NDArray[np.float64]], list[float]]
"""Judgements [pieces, 3] in their order, to the belief that a claim is true after each, in [0, 1]."""

_PIECES = 8
_AFTER = (1, 2, 4, 8)
_DAY = 86400.0
_PASSAGE = 0.9  # how far a page of an encyclopedia is believed
_RELIABLE, _OTHER, _LEAST = 0.9, 0.5, 0.5
_UPDATES = {"verimem": bayesian, "verimem-a": averaged, "verimem-b": bayesian_as_written}
_MADE_UP = [
    {"claim": f"{name} is blue.", "label": label, "evidence": f"{name} is {colour}.", "retrieved": ["It is old."]}
    for name in ("Bo", "Cy", "Di") for label, colour in (("supported", "blue"), ("refuted", "red"))
]  # fmt: skip


def read(path: Path, smoke: bool) -> list[dict[str, Any]]:
    """The rows of a set. Ends the program, saying why, where it is missing."""
    if smoke:
        return _MADE_UP
    if not path.exists():
        sys.exit(f"{path} is missing: --data names the folder of the public sets (fool_me_twice, fever_symmetric)")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def claims_of(rows: Sequence[Mapping[str, Any]], count: int) -> list[Claim]:
    """So many claims, drawn, each with at most eight sentences: what settles it first, then shuffled."""
    claims: list[Claim] = []
    for row in Random(0).sample(list(rows), min(count, len(rows))):
        pieces = list(dict.fromkeys([row["evidence"], *row["retrieved"]]))[:_PIECES]
        claims.append((row["claim"], row["label"] == "supported", Random(row["claim"]).sample(pieces, len(pieces))))
    return claims


def moved(update: VeracityUpdate) -> Curve:
    """The factuality of a memory that evidence moves, a piece a day."""

    def curve(judgements: NDArray[np.float64]) -> list[float]:
        veracity, found = 0.5, []
        for day, row in enumerate(judgements):
            memory = Memory("claim", "claim", source=MemorySource("user", "", 0.5), veracity=veracity)
            veracity = update(memory, row[None], [_PASSAGE], day * _DAY)
            found.append(veracity)
        return found

    return curve


def last_alone(judgements: NDArray[np.float64]) -> list[float]:
    """What the last piece says: for, and half of what it leaves open."""
    return [float(value) for value in judgements[:, SUPPORTED] + judgements[:, INCONCLUSIVE] / 2]


def majority(judgements: NDArray[np.float64]) -> list[float]:
    """The share of the pieces that support, among those that support or refute; one of each is thought before all."""
    sides = judgements.argmax(1)
    supports, refutes = np.cumsum(sides == SUPPORTED), np.cumsum(sides == REFUTED)
    return [float(value) for value in (supports + 1) / (supports + refutes + 2)]


CURVES: dict[str, Curve] = {
    "last piece": last_alone,
    "majority": majority,
    **{name: moved(update) for name, update in _UPDATES.items()},
}


def over_time(claims: Sequence[Claim], judge: Judge) -> dict[str, float]:
    """Brier and AUC per system and number of pieces; the differences of VeriMem to the others after all of them."""
    told = np.asarray(judge.judge([(text, claim) for claim, _, pieces in claims for text in pieces]), dtype=np.float64)
    starts = np.cumsum([0, *(len(pieces) for _, _, pieces in claims)])
    rows = [told[first:last] for first, last in pairwise(starts)]
    truth = np.array([true for _, true, _ in claims], dtype=np.float64)
    figures, errors = {}, {}
    for name, curve in CURVES.items():
        curves = [curve(row) for row in rows]
        for after in _AFTER:
            beliefs = np.array([found[min(after, len(found)) - 1] for found in curves])
            errors[name] = (beliefs - truth) ** 2
            figures[f"time: {name}: brier_after_{after}"] = float(errors[name].mean())
            figures[f"time: {name}: auc_after_{after}"] = area_under(beliefs, truth.astype(bool))
    for name in ("last piece", "majority"):
        gap = Interval.of_mean((errors["verimem"] - errors[name]).tolist())
        for key in ("value", "low", "high"):
            figures[f"time: verimem - {name}: brier, {key}"] = getattr(gap, key)
    return figures


def area_under(beliefs: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """The share of pairs of a true and a false claim whose true one is believed more; equal ones count half."""
    gaps = beliefs[truth][:, None] - beliefs[~truth][None]
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean())


def priors(rows: Sequence[Mapping[str, str]], count: int, judge: Judge) -> dict[str, float]:
    """The share of right verdicts with and without weights, and the paired difference."""
    by_claim: dict[str, dict[str, str]] = {}
    for row in rows:
        by_claim.setdefault(row["claim"], {})[row["label"]] = row["evidence"]
    claims = [claim for claim, sides in by_claim.items() if len(sides) == 2]
    drawn = Random(0).sample(claims, min(count, len(claims)))
    pairs = [(by_claim[claim][side], claim) for claim in drawn for side in ("supported", "refuted")]
    told = np.asarray(judge.judge(pairs), dtype=np.float64).reshape(-1, 2, 3)
    right: dict[str, list[float]] = {f"{case}, {how}": [] for case in ("both", "alone") for how in ("plain", "weighed")}
    for claim, sides in zip(drawn, told, strict=True):
        draw = Random(claim)
        true, is_right = draw.randrange(2), draw.random() < _RELIABLE  # the side that is true; who is right about it
        weights = np.array([_OTHER, _OTHER])
        weights[true if is_right else 1 - true] = _RELIABLE
        wanted, alone = (SUPPORTED, REFUTED)[true], draw.uniform(_OTHER, _RELIABLE)
        for how, both, one in (("plain", np.ones(2), 1.0), ("weighed", weights, alone)):
            scores = (both[:, None] * sides).sum(0)
            right[f"both, {how}"].append(float(scores[wanted] > scores[SUPPORTED + REFUTED - wanted]))
            right[f"alone, {how}"].append(float(one * sides[true][wanted] >= _LEAST))
    figures = {f"prior: {name}": float(np.mean(values)) for name, values in right.items()}
    for case in ("both", "alone"):
        gap = Interval.of_mean(np.subtract(right[f"{case}, weighed"], right[f"{case}, plain"]).tolist())
        for key in ("value", "low", "high"):
            figures[f"prior: {case}, gain, {key}"] = getattr(gap, key)
    return figures


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")
        parser.add_argument("--claims", type=int, default=300, help="of each set")
        parser.add_argument("--judge", default="builtin", help="who reads the evidence")

    arguments = parse_arguments(__doc__, add)
    judge = load_judge(arguments.judge, device=arguments.device)
    evidence = read(arguments.data / "fool_me_twice" / "claims.jsonl", arguments.smoke)
    symmetric = read(arguments.data / "fever_symmetric" / "claims.jsonl", arguments.smoke)
    claims = claims_of(evidence, arguments.claims)
    figures = over_time(claims, judge) | priors(symmetric, arguments.claims, judge)
    settings = {"claims": len(claims), "pieces": sum(len(one[2]) for one in claims), "judge": arguments.judge}
    report("longterm_fever", arguments, settings, {name: round(value, 4) for name, value in figures.items()})


if __name__ == "__main__":
    main()
