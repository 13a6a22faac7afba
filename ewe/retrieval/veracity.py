"""How far retrieved passages can be believed: by source, by age, and by what the others say (MMA, equations 1 to 5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import numpy as np

from ewe.config.lazy import warm
from ewe.errors import ConfigError
from ewe.retrieval.source import describe, searched_text
from ewe.text.words import words
from ewe.types import Passage, ScoredPassage
from ewe.types.protocols import Retriever

_ISO = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?!\d)")
Similarity = Callable[[Sequence[str]], np.ndarray]  # texts to their cosines in [-1, 1], float64 [n, n]


class Weighed:
    """A retriever whose passages carry the veracity that a scorer gives them; order and scores stay."""

    def __init__(self, retriever: Retriever, scorer: SourceTable | ConfidenceScorer) -> None:
        self.retriever, self._scorer = retriever, scorer
        self.description = describe(retriever)

    def warm(self) -> None:
        """Loads what the retriever needs."""
        warm(self.retriever)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first."""
        return [self._weighed(row) for row in self.retriever.retrieve(queries, top_k)]

    def _weighed(self, row: list[ScoredPassage]) -> list[ScoredPassage]:
        passages = [scored.passage for scored in row]
        return [
            ScoredPassage(replace(passage, veracity=float(veracity)), scored.score)
            for scored, passage, veracity in zip(row, passages, self._scorer.weigh(passages), strict=True)
        ]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A veracity per source (eq. 2); "*" stands for sources that are not listed, which else keep the passage's own."""

    table: Mapping[str, float]

    def weigh(self, passages: Sequence[Passage]) -> list[float]:
        """The sources' veracities."""
        others = self.table.get("*")
        return [self.table.get(passage.source, passage.veracity if others is None else others) for passage in passages]


@dataclass(frozen=True, slots=True)
class ConfidenceScorer:
    """Source, age and agreement as one weighted mean, cut to [0, 1] (eq. 1).

    weights: of the three, before they are normalised over those that a passage has (one without a date has no age, one
    found alone has no agreement). Agreement (eq. 4, 5) is the mean over the other passages of their own confidence from
    source and age times the cosine with them, each counted by how close it is (the cosine's size): what trusted
    passages close by say too raises it. The paper leaves open how close passages count; this is our choice. With
    cosines of texts, agreement means that passages speak alike, not that they say the same: a contradiction in the same
    words agrees. similarity: cosines of texts; None for those of their words. half_life_days: the age at which a dated
    passage counts half (eq. 3; None: at any age the same). today: None for the day of the call.
    """

    sources: SourceTable = SourceTable({})
    half_life_days: float | None = None
    weights: tuple[float, float, float] = (0.45, 0.40, 0.15)
    similarity: Similarity | None = None
    today: date | None = None

    def __post_init__(self) -> None:
        if min(self.weights) < 0 or self.weights[0] <= 0:
            raise ConfigError(f"weights must not be negative, and the source's must be positive, got {self.weights}")

    def weigh(self, passages: Sequence[Passage]) -> list[float]:
        """The confidences."""
        if not passages:
            return []
        by_source = np.array(self.sources.weigh(passages))
        ages = [self._age_factor(passage) for passage in passages]
        sums = self.weights[0] * by_source
        shares = np.full(len(passages), self.weights[0])
        for index, age in enumerate(ages):
            if age is not None:
                sums[index] += self.weights[1] * age
                shares[index] += self.weights[1]
        if len(passages) > 1 and self.weights[2] > 0:
            texts = [searched_text(passage) for passage in passages]
            cosines = (self.similarity or word_cosines)(texts)
            sums = sums + self.weights[2] * agreement(cosines, sums / shares)
            shares = shares + self.weights[2]
        return [float(value) for value in np.clip(sums / shares, 0.0, 1.0)]

    def _age_factor(self, passage: Passage) -> float | None:
        """In [0, 1], 1 for dates to come; None without an ISO date (a year means its first day)."""
        written = _date(passage.date)
        if self.half_life_days is None or written is None:
            return None
        today = self.today or datetime.now(UTC).date()
        return half_life_decay((today - written).days, self.half_life_days)


def half_life_decay(age: float, half_life: float) -> float:
    """exp(-ln 2 * age / half-life) (eq. 3), in [0, 1]; both in the same unit, half_life > 0; 1 for ages below 0."""
    return float(2.0 ** (-max(0.0, age) / half_life))


def agreement(support: np.ndarray, confidences: np.ndarray, closeness: np.ndarray | None = None) -> np.ndarray:
    """Per text sum_j w_ij C_j s_ij / sum_j w_ij over the others (eq. 4, 5); 0 where nothing is close.

    support: s, float [n, n] in [-1, 1], the cosines in the paper; confidences: C, float [n] in [0, 1]; closeness: w,
    float [n, n], not negative; None for |s|. Returns float64 [n] in [-1, 1].
    """
    weights = np.abs(np.asarray(support if closeness is None else closeness, dtype=np.float64))
    np.fill_diagonal(weights, 0.0)
    total = weights.sum(axis=1)
    weighted = (weights * support) @ confidences
    return np.asarray(np.divide(weighted, total, out=np.zeros_like(total), where=total > 0))


def word_cosines(texts: Sequence[str]) -> np.ndarray:
    """Cosines of the texts' word counts, float64 [n, n] in [0, 1]; 0 with a text without words."""
    counts = [Counter(words(text)) for text in texts]
    vocabulary = {word: index for index, word in enumerate(sorted(set().union(*counts)))}
    vectors = np.zeros((len(texts), len(vocabulary)))
    for row, count in enumerate(counts):
        for word, times in count.items():
            vectors[row, vocabulary[word]] = times
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return np.asarray(vectors @ vectors.T)


def _date(text: str) -> date | None:
    """The day that an ISO date names, the first one of a month or a year; None if it is none."""
    match = _ISO.match(text)
    try:
        return date(*(int(part or 1) for part in match.groups())) if match else None
    except ValueError:
        return None
