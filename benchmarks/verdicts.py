"""Whether verdicts hold on real text: what the verifier says of true sentences and of changed ones, with intervals.

running: sentences of whole Wikipedia articles against a datastore that holds their paragraphs and others, as they are
and with one number, name or negation changed. contrast: up to 100 sentences for each of 19 kinds of change.
paraphrase: the same for 6 kinds of edit that leave them true. fever: FEVER's claims against the texts of all of its
evidence. summary: statements about documents of about 900 words, each summary good and with one false statement; the
documents are taken to be complete, so that what nothing in them tells of is refuted. written: sentences in words of
their own about paragraphs of Wikipedia, written for this benchmark. claims: claims in words of their own against whole
articles, true, false and open. answers: what small models wrote about these articles, labelled by reading. omissions:
sentences of which words are left out, which matter ("the fourth largest") or do not. near: what a model may write from
a passage: values in another form, words turned round, one easy step on; true, false and open. told: answers about
invented articles, retold in other words, with the mistakes that models make.
Beside them the time per checked sentence, 32 in a call, and how far the scores of verdicts are from their being right.

A share comes with the ends of its 95% interval (Wilson) and the number of sentences. Tune on
--half tune; figures are reported on --half report and, with other texts, --half fresh.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, Sections, parse_arguments
from benchmarks.verdicts_claims import answers, claims, near, omissions, told
from benchmarks.verdicts_sets import Case, Part, contrast, fever, paraphrase, running, summary, written
from benchmarks.verdicts_texts import Half
from ewe.config import VerificationConfig
from ewe.retrieval.bm25 import BM25Retriever
from ewe.types import Passage, Verdict, VerificationRequest, VerificationResult
from ewe.types.protocols import Verifier
from ewe.verification.open_verifier import open_verifier

PARTS: Mapping[str, Callable[[Path, Half, int], Part]] = {
    "running": running,
    "contrast": contrast,
    "paraphrase": paraphrase,
    "fever": fever,
    "summary": summary,
    "written": written,
    "claims": claims,
    "answers": answers,
    "omissions": omissions,
    "near": near,
    "told": told,
}
_LIMITS = {
    "running": 150,
    "contrast": 40,
    "paraphrase": 40,
    "fever": 300,
    "summary": 200,
    "written": 1000,
    "claims": 1000,
    "answers": 1000,
    "omissions": 1000,
    "near": 1000,
    "told": 1000,
}
_BATCH = 32
_Z = 1.96  # of a 95% interval


def checked(verifier: Verifier, part: Part) -> tuple[list[VerificationResult], float]:
    """The result per case, and the seconds that checking took."""
    requests = [case.request for case in part.cases]
    start = time.perf_counter()
    results = [
        result
        for first in range(0, len(requests), _BATCH)
        for result in verifier.verify(requests[first : first + _BATCH])
    ]
    return results, time.perf_counter() - start


def figures_of(name: str, part: Part, results: Sequence[VerificationResult], seconds: float) -> dict[str, Any]:
    """Per kind of case the shares of its verdicts, and what all of them cost."""
    figures: dict[str, Any] = {}
    for kind in dict.fromkeys(case.kind for case in part.cases):
        verdicts = Counter(
            result.verdict for case, result in zip(part.cases, results, strict=True) if case.kind == kind
        )
        total = sum(verdicts.values())
        for verdict in (Verdict.SUPPORTED, Verdict.REFUTED):
            figures |= shares(f"{name}: {kind}: {verdict.value}", verdicts[verdict], total)
    for verdict, mark in ((Verdict.SUPPORTED, "ticks"), (Verdict.REFUTED, "crosses")):
        given = [case for case, result in zip(part.cases, results, strict=True) if result.verdict is verdict]
        figures |= shares(f"{name}: {mark} right", sum(case.expected is verdict for case in given), len(given))
    right = sum(result.verdict is case.expected for case, result in zip(part.cases, results, strict=True))
    wrong = sum(_is_wrong(case, result) for case, result in zip(part.cases, results, strict=True))
    figures |= shares(f"{name}: right", right, len(results)) | shares(f"{name}: wrong", wrong, len(results))
    figures[f"{name}: calibration error"] = round(calibration_error(part.cases, results), 3)
    figures[f"{name}: seconds per sentence"] = round(seconds / max(1, len(results)), 3)
    return figures | _told_apart(name, part.cases, results)


def shares(name: str, count: int, total: int) -> dict[str, float]:
    """A share with the ends of its 95% interval by Wilson's score, and of how many; nothing of none."""
    if not total:
        return {}
    p, n = count / total, total
    middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    ends = {f"{name}, from": max(0.0, middle - half), f"{name}, to": min(1.0, middle + half)}
    return {key: round(value, 3) for key, value in {name: p, **ends}.items()} | {f"{name}, of": total}


def calibration_error(cases: Sequence[Case], results: Sequence[VerificationResult], num_bins: int = 10) -> float:
    """Mean distance between the claims' scores and the share of right verdicts, over sentences with a verdict."""
    bins: dict[int, list[tuple[float, bool]]] = {}
    for case, result in zip(cases, results, strict=True):
        scores = [claim.score for claim in result.claims if claim.verdict is result.verdict]
        if result.verdict in (Verdict.SUPPORTED, Verdict.REFUTED) and scores:
            score = max(scores) if result.verdict is Verdict.REFUTED else min(scores)
            bins.setdefault(min(num_bins - 1, int(score * num_bins)), []).append(
                (score, result.verdict is case.expected)
            )
    total = sum(map(len, bins.values()))
    return sum(abs(sum(s for s, _ in bin_) - sum(r for _, r in bin_)) for bin_ in bins.values()) / max(1, total)


def _is_wrong(case: Case, result: VerificationResult) -> bool:
    return result.verdict in (Verdict.SUPPORTED, Verdict.REFUTED) and result.verdict is not case.expected


def _told_apart(name: str, cases: Sequence[Case], results: Sequence[VerificationResult]) -> dict[str, Any]:
    """Balanced accuracy of telling good summaries from bad ones, a bad one being one with a refuted sentence."""
    is_bad: dict[str, bool] = {}
    is_refuted: dict[str, bool] = {}
    for case, result in zip(cases, results, strict=True):
        if case.group:
            is_bad[case.group] = is_bad.get(case.group, False) or case.expected is Verdict.REFUTED
            is_refuted[case.group] = is_refuted.get(case.group, False) or result.verdict is Verdict.REFUTED
    if not is_bad:
        return {}
    sides = [[is_refuted[group] is bad for group in is_bad if is_bad[group] is bad] for bad in (True, False)]
    accuracy = sum(sum(side) / max(1, len(side)) for side in sides) / 2
    return {
        f"{name}: balanced accuracy of summaries": round(accuracy, 3),
        **shares(f"{name}: good summaries refuted", len(sides[1]) - sum(sides[1]), len(sides[1])),
        **shares(f"{name}: bad summaries refuted", sum(sides[0]), len(sides[0])),
    }


def measure(name: str, arguments: argparse.Namespace, settings: VerificationConfig) -> dict[str, Any]:
    """The figures of one part."""
    if arguments.smoke:
        part = smoke_part()
    else:
        part = PARTS[name](arguments.data, arguments.half, arguments.limit or _LIMITS[name])
    retriever, is_complete = BM25Retriever(part.passages), name == "summary"
    verifier = open_verifier("claims", retriever, settings, device=arguments.device, assume_complete=is_complete)
    verifier.verify([VerificationRequest("", "", "Ana Ruiz was born in 1931.")])  # loads the judge
    return figures_of(name, part, *checked(verifier, part))


def smoke_part() -> Part:
    """A made-up part."""
    cases = [
        Case("true", VerificationRequest("", "", "Ana Ruiz was born in 1931."), Verdict.SUPPORTED, "one"),
        Case("numbers", VerificationRequest("", "", "Ana Ruiz was born in 1950."), Verdict.REFUTED, "two"),
    ]
    return Part([Passage("0", "Ana Ruiz was born in 1931.")], cases)


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--half", choices=("tune", "report", "fresh"), default="report", help="which articles and claims"
        )
        parser.add_argument("--part", action="append", choices=tuple(PARTS), help="one part alone (may be repeated)")
        parser.add_argument("--limit", type=int, help="true sentences, sentences per kind of contrast, claims")
        parser.add_argument("--judge", default="builtin", help="any name that load_judge knows")
        parser.add_argument("--judge-model", help="the chat model under an adapter, in place of the one it names")
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")

    arguments = parse_arguments(__doc__, add)
    settings = VerificationConfig(judge=arguments.judge, judge_model=arguments.judge_model)
    sections = Sections("verdicts", arguments, {"judge": arguments.judge, "half": arguments.half})
    for name in arguments.part or PARTS:
        sections.take(name, partial(measure, name, arguments, settings))
    sections.close()


if __name__ == "__main__":
    main()
