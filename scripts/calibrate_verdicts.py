"""Fits the rule that turns a judge's words into verdicts, and writes it where the verifier reads it.

Run by hand after a judge was trained: `python scripts/calibrate_verdicts.py --judge NAME`. Every sentence goes the way
that the sentences of a text go: claim, BM25, selection, judge. They are those of benchmarks/verdicts.py,
all of the half for tuning: articles, changed sentences and FEVER claims that are never reported. Of every third true or
false one the passages that tell of it are withheld: it must come out inconclusive. The rule is fitted through the
combination of passages, on the verdict of the sentence; what one passage says is never labelled. Kinds of change that
a source may leave open (a role, a quantity) must only not be supported.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from judge_training.sources import read_fever

from benchmarks.verdicts_sets import Case, Part, contrast, fever, paraphrase, running, summary
from benchmarks.verdicts_texts import fever_half, share_of
from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Verdict
from ewe.verification.claim_reading import StatedClaim
from ewe.verification.claim_verifier import EVIDENCE_TOP_K
from ewe.verification.decision import FEATURES, Probabilities, Reading, features, rule_of, window_probabilities
from ewe.verification.extraction.whole_sentences import WholeSentences
from ewe.verification.judges import Judge, load_judge
from ewe.verification.signals import SIGNALS, signals, swaps_names
from ewe.verification.window_reader import WindowReader

ROOT = Path(__file__).resolve().parents[1]
_TABLE = ROOT / "ewe" / "verification" / "decisions.json"
_SETS = {"running": (running, 300), "contrast": (contrast, 60), "fever": (fever, 800)}
_SETS |= {"summary": (summary, 216), "paraphrase": (paraphrase, 60)}
_SHARES = {"running": 1.5, "contrast": 1.0, "fever": 1.5, "summary": 0.4, "paraphrase": 1.0}
_OPEN_TO_DOUBT = frozenset({"some and all", "only", "list", "certainty", "units", "roles", "subject"})
_SUPPORTED, _REFUTED, _OPEN, _NOT_SUPPORTED = range(4)
_TELLS = 0.4  # A passage that lacks less of a sentence's words than this tells of it.
_DECAY = 0.001  # Weight of the squared parameters.
_GRID = np.round(np.arange(0.3, 0.8, 0.05), 2)
_PRICE = 0.5  # What a wrong verdict costs more than a missing one.
_TIE = 0.002  # Thresholds within this of the best are as good.


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence with the features [passages, features] of what was found, which of it says nearly the same [passages],
    what the others say [passages, 3], its label, its set and its kind.
    """

    features: NDArray[np.float64]
    near: Sequence[bool]
    others: Sequence[Probabilities]
    label: int
    part: str
    kind: str


def examples_of(name: str, part: Part, judge: Judge, groups: dict[str, str]) -> list[Example]:
    """The sentences of a part, and a third of them once more without the passages that tell of them."""
    extracted = WholeSentences(clauses=False).extract([case.request for case in part.cases])
    stated = [(case, claims[0].text) for case, claims in zip(part.cases, extracted, strict=True) if claims]
    claims = [StatedClaim(claim, case.request.sentence) for case, claim in stated]
    found = BM25Retriever(part.passages).retrieve([claim.text for claim in claims], EVIDENCE_TOP_K)
    passages = [[one.passage for one in group] for group in found]
    read = WindowReader(judge, rule_of("default"), by_veracity=False).readings(claims, passages)
    examples = []
    for (case, _), readings in zip(stated, read, strict=True):
        examples.append(_example(name, case.kind, case, readings, _label(case)))
        if name in ("running", "fever", "summary") and share_of(case.request.sentence, "withheld") < 1 / 3:
            silent = [reading for reading in readings if not _tells(case, reading, groups)]
            examples.append(_example(name, "withheld", case, silent, _OPEN))
    return examples


def _label(case: Case) -> int:
    if case.kind in _OPEN_TO_DOUBT:
        return _NOT_SUPPORTED
    return _SUPPORTED if case.expected is Verdict.SUPPORTED else _REFUTED


def _tells(case: Case, reading: Reading, groups: dict[str, str]) -> bool:
    if case.request.sentence in groups:
        return groups.get(reading.window.passage.text) == groups[case.request.sentence]
    window = reading.window
    return signals(case.request.sentence, window.excerpt, window.led)[SIGNALS.index("words")] <= _TELLS


def _example(part: str, kind: str, case: Case, readings: Sequence[Reading], label: int) -> Example:
    sentence = case.request.sentence
    told = [reading for reading in readings if not (reading.is_near and swaps_names(sentence, reading.window.excerpt))]
    rows = np.array([features(sentence, reading) for reading in told]).reshape(len(told), len(FEATURES))
    return Example(rows, [r.is_near for r in told], [window_probabilities(r) for r in told], label, part, kind)


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples as tensors: features [n, passages, features], which passages say nearly the same [n, passages], what the
    others say [n, passages, 3], labels and weights [n].
    """

    features: torch.Tensor
    near: torch.Tensor
    others: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor


def batch_of(examples: Sequence[Example]) -> Batch:
    """All examples; every kind of a part weighs as much as another, but for those of changes and of edits."""
    size = (len(examples), EVIDENCE_TOP_K)
    rows, near = torch.zeros(*size, len(FEATURES), dtype=torch.float64), torch.zeros(size, dtype=torch.bool)
    others = torch.zeros(*size, 3, dtype=torch.float64)
    others[..., _OPEN] = 1.0
    for number, example in enumerate(examples):
        found = len(example.near)
        rows[number, :found] = torch.from_numpy(example.features)
        near[number, :found] = torch.tensor(example.near)
        others[number, :found] = torch.tensor(example.others, dtype=torch.float64).reshape(found, 3)
    kinds = [(e.part, "" if e.part in ("contrast", "paraphrase") else e.kind) for e in examples]
    counts = Counter(kinds)
    weights = torch.tensor([_SHARES[kind[0]] / counts[kind] for kind in kinds], dtype=torch.float64)
    return Batch(rows, near, others, torch.tensor([e.label for e in examples]), weights / weights.sum())


def combine(weights: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Shares [n, 3] of supported, refuted and unknown by Dempster's rule over passages (`combination`)."""
    logits = batch.features @ weights.T
    fitted = torch.softmax(torch.cat([logits, torch.zeros_like(logits[..., :1])], -1), -1)
    supported, refuted, unknown = torch.where(batch.near[..., None], fitted, batch.others).unbind(-1)
    nothing = unknown.prod(1)
    masses = [(supported + unknown).prod(1) - nothing, (refuted + unknown).prod(1) - nothing, nothing]
    return torch.stack(masses, -1) / sum(masses).clamp(min=1e-9)[:, None]


def fit(batch: Batch) -> torch.Tensor:
    """Weights [2, features] of the least weighted log loss of sentences' labels, with a small decay."""
    scale = batch.features[batch.near].std(0).clamp(min=1e-6)
    scale[0] = 1.0
    weights = torch.zeros(2, len(FEATURES), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=400, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = _loss(weights / scale, batch) + _DECAY * (weights[:, 1:] ** 2).sum()
        value.backward()
        return value

    optimizer.step(loss)  # type: ignore[arg-type]
    return (weights / scale).detach()


def _loss(weights: torch.Tensor, batch: Batch) -> torch.Tensor:
    shares = combine(weights, batch).clamp(1e-5, 1 - 1e-5)
    right = shares.gather(1, batch.labels.clamp(max=_OPEN)[:, None])[:, 0]
    right = torch.where(batch.labels == _NOT_SUPPORTED, 1.0 - shares[:, 0], right)
    return -(batch.weights * right.log()).sum()


def choose(weights: torch.Tensor, batch: Batch) -> tuple[float, float]:
    """The thresholds of supported and refuted with the most right verdicts less wrong ones: the middle of the best."""
    shares = combine(weights, batch)
    worths = {(float(s), float(r)): worth(shares, batch, float(s), float(r)) for s, r in product(_GRID, _GRID)}
    best = np.array([pair for pair in worths if worths[pair] > max(worths.values()) - _TIE]).mean(0)
    return float(best[0].round(2)), float(best[1].round(2))


def worth(shares: torch.Tensor, batch: Batch, supported: float, refuted: float) -> float:
    """Weighted share of right verdicts less that of wrong ones."""
    found = torch.where(shares[:, 1] >= refuted, _REFUTED, _OPEN)
    found = torch.where((shares[:, 0] >= supported) & (shares[:, 0] > shares[:, 1]), _SUPPORTED, found)
    right = (found == batch.labels) | ((batch.labels == _NOT_SUPPORTED) & (found != _SUPPORTED))
    wrong = ~right & (found != _OPEN)
    return float((batch.weights * (right.double() - _PRICE * wrong.double())).sum())


def write(name: str, weights: torch.Tensor, thresholds: tuple[float, float], provenance: str) -> None:
    """Puts the rule of one judge into the table, beside those of others."""
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    sides = dict(zip(("supported", "refuted"), weights.tolist(), strict=True))
    table["judges"][name] = {
        "supported": thresholds[0],
        "refuted": thresholds[1],
        "floor": 0.0,
        "weights": {
            side: {feature: round(value, 4) for feature, value in zip(FEATURES, row, strict=True)}
            for side, row in sides.items()
        },
        "provenance": provenance,
    }
    _TABLE.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Fits, chooses, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default="builtin", help="any name that load_judge knows")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    args = parser.parse_args()
    pairs = fever_half(read_fever(args.data).test, "tune")
    groups = {text: pair.group for pair in pairs for text in (pair.claim, pair.evidence)}
    judge = load_judge(args.judge)
    examples = []
    for name, (read, limit) in _SETS.items():
        examples += examples_of(name, read(args.data, "tune", limit), judge, groups)
        print(f"{name}: {len(examples)} sentences so far", flush=True)
    batch = batch_of(examples)
    weights = fit(batch)
    thresholds = choose(weights, batch)
    loss = float(_loss(weights, batch))
    write(
        args.judge,
        weights,
        thresholds,
        f"scripts/calibrate_verdicts.py: fitted on {len(examples)} sentences of the half for tuning of "
        f"benchmarks/verdicts.py, {EVIDENCE_TOP_K} passages each; log loss {loss:.3f} on them",
    )
    print(json.dumps({"thresholds": thresholds, "loss": round(loss, 4)}))


if __name__ == "__main__":
    main()
