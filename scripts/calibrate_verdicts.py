"""Chooses the thresholds of verdicts for a judge on held-back FEVER, and writes them where the verifier reads them.

Run by hand after a judge was trained: `python scripts/calibrate_verdicts.py`. Every claim of held-back FEVER goes the
way that the claims of a text go: BM25 over all of FEVER's evidence, selection, judge, combination. Of every third claim
the evidence is withheld (all of its group, which shares a sentence, a claim or the leading name with it): it must come
out inconclusive. Thresholds and floor are chosen on one half of the groups and measured on the other.
Owns: the claims, and what is written. Knows the sets of judge_training and `ewe.verification`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from judge_training.figures import calibration_half
from judge_training.pairs import Label, Pair, share_of
from judge_training.sources import read_fever
from numpy.typing import NDArray

from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Passage, ScoredPassage
from ewe.verification.calibration import Thresholds, choose_thresholds, macro_f1, thresholds_of, verdicts
from ewe.verification.claim_verifier import EVIDENCE_TOP_K, ClaimVerifier
from ewe.verification.combination import JudgedPiece, combined
from ewe.verification.extraction.rules import RuleClaims
from ewe.verification.judges import Judge, load_judge

ROOT = Path(__file__).resolve().parents[1]
_TABLE = ROOT / "ewe" / "verification" / "thresholds.json"
_FLOORS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_LOOKED_AT = 40  # Passages per query of which the withheld ones are left out.


@dataclass(frozen=True, slots=True)
class Case:
    """A claim that went through retrieval and judging; label: what its verdict should be."""

    label: Label
    pieces: list[JudgedPiece]


class Withholding:
    """Finds evidence by BM25, less the groups that are withheld from a claim ({claim: group}). Passages carry their
    group as source while they are searched, and no source afterwards.
    """

    def __init__(self, pairs: Sequence[Pair], withheld: dict[str, str]) -> None:
        texts = {pair.evidence: pair.group for pair in pairs}
        self._retriever = BM25Retriever(Passage(str(i), text, source=g) for i, (text, g) in enumerate(texts.items()))
        self._withheld = withheld

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages that are not withheld, best first."""
        results = []
        for query, found in zip(queries, self._retriever.retrieve(queries, _LOOKED_AT), strict=True):
            kept = [item for item in found if item.passage.source != self._withheld.get(query)]
            results.append([replace(item, passage=replace(item.passage, source="")) for item in kept[:top_k]])
        return results


def run_cases(judge: Judge, pairs: Sequence[Pair], pool: Sequence[Pair], top_k: int) -> list[Case]:
    """The claims of `pairs` against the evidence of `pool`."""
    by_claim = {pair.claim: pair for pair in pairs}
    withheld = {claim: pair.group for claim, pair in by_claim.items() if share_of(claim, "withheld") < 1 / 3}
    verifier = ClaimVerifier(
        Withholding(pool, withheld), RuleClaims(), judge, thresholds_of("default"), evidence_top_k=top_k
    )
    labels = [Label.INCONCLUSIVE if claim in withheld else pair.label for claim, pair in by_claim.items()]
    return [Case(*case) for case in zip(labels, verifier.judged(list(by_claim)), strict=True)]


def choose(cases: Sequence[Case]) -> Thresholds:
    """The thresholds and the floor with the best macro-F1."""
    options = [choose_thresholds(_shares(cases, floor), _labels(cases), floor) for floor in _FLOORS]
    return max(options, key=lambda thresholds: measure(cases, thresholds)["macro-F1"])


def measure(cases: Sequence[Case], thresholds: Thresholds) -> dict[str, float]:
    """Macro-F1 over three classes, and how often a verdict on one side is right, and how often there is one."""
    labels, found = _labels(cases), verdicts(_shares(cases, thresholds.floor), thresholds)
    figures = {"macro-F1": macro_f1(found, labels)}
    for label in (Label.SUPPORTED, Label.REFUTED):
        right = float(((found == label) & (labels == label)).sum())
        figures[f"precision {label.name.lower()}"] = right / max(1, int((found == label).sum()))
        figures[f"recall {label.name.lower()}"] = right / max(1, int((labels == label).sum()))
    return {name: round(value, 3) for name, value in figures.items()}


def _shares(cases: Sequence[Case], floor: float) -> NDArray[np.float64]:
    return np.stack([combined(case.pieces, floor) for case in cases])


def _labels(cases: Sequence[Case]) -> NDArray[np.int64]:
    return np.array([int(case.label) for case in cases])


def write(name: str, thresholds: Thresholds, provenance: str) -> None:
    """Put the thresholds of one judge into the table, beside those of others."""
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    table["judges"][name] = {
        "supported": thresholds.supported,
        "refuted": thresholds.refuted,
        "floor": thresholds.floor,
        "provenance": provenance,
    }
    _TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Chooses, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default="builtin", help="any name that load_judge knows")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--claims", type=int, help="use this many claims of each half only (a trial)")
    parser.add_argument(
        "--top-k", type=int, default=EVIDENCE_TOP_K, help="passages per claim (another number writes nothing)"
    )
    args = parser.parse_args()
    fever = read_fever(args.data)
    pool = [*fever.train, *fever.test]
    judge = load_judge(args.judge)
    chosen, measured = (
        run_cases(judge, half[: args.claims], pool, args.top_k) for half in calibration_half(fever.test)
    )
    thresholds = choose(chosen)
    figures = {"choosing": measure(chosen, thresholds), "held back": measure(measured, thresholds)}
    figures["held back, default thresholds"] = measure(measured, thresholds_of("default"))
    if args.claims is None and args.top_k == EVIDENCE_TOP_K:
        write(
            args.judge,
            thresholds,
            f"scripts/calibrate_verdicts.py: chosen on {len(chosen)} claims of held-back FEVER (evidence of a third "
            f"withheld, {args.top_k} passages each) for macro-F1, measured on {len(measured)} others: "
            + json.dumps(figures["held back"]),
        )
    print(json.dumps({"thresholds": repr(thresholds), "claims": [len(chosen), len(measured)], **figures}, indent=2))


if __name__ == "__main__":
    main()
