"""Which scores are good enough: dropping weak passages, and finding the limit on a sample.

Owns: the limit's meaning and its calibration. The scales of the retrievers' scores:

| retriever | scale | what a limit holds for |
| --- | --- | --- |
| BM25 | 0 upwards, sums of word weights; grow with query and collection | one collection |
| dense, unit vectors | cosines in [-1, 1] | one encoder |
| dense, other vectors | inner products without bounds | one encoder, roughly |
| hybrid (reciprocal ranks) | (0, sum of weights / (k + 1)] | nothing: ranks agree on bad passages too |
| reranked by a cross-encoder | [0, 1] | one model |

Knows `ewe.protocols` and `ewe.types`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ewe.errors import ConfigError
from ewe.protocols import Retriever
from ewe.types import ScoredPassage


class Thresholded:
    """A retriever without its passages that score less than `threshold`."""

    def __init__(self, retriever: Retriever, threshold: float) -> None:
        self._retriever, self.threshold = retriever, threshold
        self.description = f"{getattr(retriever, 'description', type(retriever).__name__)}, scores from {threshold:g}"

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages with scores of at least the threshold, best first."""
        found = self._retriever.retrieve(queries, top_k)
        return [[scored for scored in row if scored.score >= self.threshold] for row in found]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A limit and what it did on the sample.

    precision: share of relevant passages among those that pass; recall: share of the relevant ones found that pass;
    queries: size of the sample; reached: whether the precision that was asked for was reached.
    """

    threshold: float
    precision: float
    recall: float
    queries: int
    reached: bool


def calibrate_threshold(
    retriever: Retriever, sample: Sequence[tuple[str, Collection[str]]], precision: float = 0.8, top_k: int = 10
) -> Calibration:
    """The lowest threshold at which `precision` of what passes is relevant; else the one with the best F1.

    sample: queries with the ids of the passages that are relevant to them (none, for queries that nothing answers: they
    matter most). Raises ConfigError if the sample finds no relevant passage at all, or precision is not in (0, 1].
    """
    if not 0 < precision <= 1:
        raise ConfigError(f"precision must lie in (0, 1], got {precision}")
    rows = retriever.retrieve([query for query, _ in sample], top_k)
    labelled = [
        (scored.score, scored.passage.id in relevant)
        for row, (_, relevant) in zip(rows, sample, strict=True)
        for scored in row
    ]
    total = sum(is_relevant for _, is_relevant in labelled)
    if not total:
        raise ConfigError(f"none of the {len(sample)} queries finds a relevant passage: no threshold can be set")
    points = _curve(labelled, total)
    good = [point for point in points if point[1] >= precision]
    chosen = min(good) if good else max(points, key=lambda point: _f1(point[1], point[2]))
    return Calibration(*chosen, len(sample), bool(good))


def _curve(labelled: Sequence[tuple[float, bool]], total: int) -> list[tuple[float, float, float]]:
    """(threshold, precision, recall) at every score that occurs."""
    points: list[tuple[float, float, float]] = []
    hits = 0
    ordered = sorted(labelled, reverse=True)
    for count, (score, is_relevant) in enumerate(ordered, 1):
        hits += is_relevant
        if count == len(ordered) or ordered[count][0] != score:
            points.append((score, hits / count, hits / total))
    return points


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
