"""The papers' systems as scorers of what a query found, and none at all to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ewe.longterm.records import Memory
from ewe.longterm.scoring.checks import check_settings
from ewe.longterm.scoring.mark import PRESETS, MRSWeights, feedback_score, relevance, relevance_as_written
from ewe.longterm.scoring.mark_retention import EXAMPLE_POLICY, RetentionPolicy
from ewe.longterm.scoring.mma import HALF_LIFE_DAYS, PUBLISHED_WEIGHTS, MMAWeights, confidence, temporal_decay
from ewe.longterm.scoring.protocol import Candidate, Score
from ewe.longterm.scoring.support import entailment_support
from ewe.retrieval.veracity import Similarity, word_cosines
from ewe.verification.judges.protocol import Judge

_SECONDS_PER_DAY = 86400.0


class NoScorer:
    """Every memory is believed, the closest comes first: what the scorers are compared with."""

    name = "none"

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """Belief 1, ranked by similarity."""
        return [Score(1.0, candidate.similarity) for candidate in candidates]


class VeriMemScorer:
    """The veracity that the store holds, ranked by similarity (verimem-a.txt, 2.4); theta(q) does the rest."""

    name = "verimem"

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """Belief v, ranked by similarity."""
        return [Score(candidate.memory.veracity, candidate.similarity) for candidate in candidates]


class MMAScorer:
    """The confidence of eq. 1 to 5 over what was found together; ranked by similarity times confidence.

    similarity: cosines of texts, for closeness and, without a judge, for support (as the paper has it); None for those
    of their words. judge: if given, support is entailment minus contradiction, and memories without neighbours keep
    their share of the consensus (our forms). least_closeness: below it a memory is no neighbour. least: the
    confidence under which a memory is flagged and not used.
    """

    name = "mma"

    def __init__(
        self,
        weights: MMAWeights = PUBLISHED_WEIGHTS,
        *,
        judge: Judge | None = None,
        similarity: Similarity | None = None,
        half_life_days: float = HALF_LIFE_DAYS,
        least_closeness: float = 0.3,
        least: float = 0.5,
        source: Callable[[Memory], float] = lambda memory: memory.source.reliability,
    ) -> None:
        check_settings(least=least, least_closeness=least_closeness)
        self._weights, self._judge, self._similarity = weights, judge, similarity or word_cosines
        self._half_life_days, self._least_closeness, self._least = half_life_days, least_closeness, least
        self._source = source

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """Belief C(M), ranked by similarity times C(M). Raises JudgeError as the judge does."""
        if not candidates:
            return []
        texts = [candidate.memory.content for candidate in candidates]
        cosines = np.asarray(self._similarity(texts), dtype=np.float64)
        closeness = np.where(np.abs(cosines) >= self._least_closeness, np.abs(cosines), 0.0)
        support = np.clip(cosines, -1.0, 1.0)
        if self._judge is not None:
            support = entailment_support(texts, self._judge, closeness, self._least_closeness)
        found = confidence(
            np.array([self._source(candidate.memory) for candidate in candidates]),
            np.array([temporal_decay(one.memory.created_at, now, self._half_life_days) for one in candidates]),
            support,
            closeness,
            self._weights,
            skip_lonely=self._judge is not None,
        )
        return [
            Score(float(value), candidate.similarity * float(value), bool(value >= self._least))
            for candidate, value in zip(candidates, found.confidences, strict=True)
        ]


class MARKScorer:
    """Ranked by the relevance score, believed by the trust score, used while the retention policy keeps it.

    weights: one of `PRESETS` or others; as_written: the paper's form of the score instead of the one whose parts are
    normalised. Trust is the one that the counts of the record lead to (`settled_trust`).
    """

    name = "mark"

    def __init__(
        self,
        weights: MRSWeights = PRESETS["default"],
        *,
        as_written: bool = False,
        retention: RetentionPolicy = EXAMPLE_POLICY,
    ) -> None:
        self._weights, self._retention = weights, retention
        self._relevance = relevance_as_written if as_written else relevance

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """Belief TS, ranked by MRS, usable while retained."""
        memories = [candidate.memory for candidate in candidates]
        ranks = self._relevance(
            self._weights,
            np.array([memory.recall_count for memory in memories], dtype=np.int64),
            np.array([(now - memory.created_at) / _SECONDS_PER_DAY for memory in memories]),
            np.array([candidate.similarity for candidate in candidates]),
            np.array([feedback_score(memory.correct_count, memory.incorrect_count) for memory in memories]),
        )
        scores = []
        for memory, rank in zip(memories, ranks, strict=True):
            total = max(memory.recall_count, memory.correct_count + memory.incorrect_count)
            trust = self._retention.settled_trust(memory.correct_count, total)
            persistence = self._retention.persistence(total, memory.incorrect_count)
            scores.append(Score(trust, float(rank), self._retention.retains(trust, persistence)))
        return scores
