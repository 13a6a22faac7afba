"""Scorers of what a query found: the engine's own, the papers' systems, and none at all to compare with."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.records import Memory
from ewe.longterm.scoring import mark
from ewe.longterm.scoring.mma import PUBLISHED_WEIGHTS, MMAWeights, confidence, temporal_decay
from ewe.longterm.scoring.protocol import Candidate, Score
from ewe.longterm.scoring.verimem import log_odds
from ewe.retrieval.veracity import half_life_decay, word_cosines
from ewe.verification.judges.protocol import REFUTED, SUPPORTED, Judge, checked

_SECONDS_PER_DAY = 86400.0
_LEAST_CLOSENESS = 0.3  # below it a memory is no neighbour
_LEAST_CONFIDENCE = 0.5  # below it a memory is not used


class DefaultScorer:
    """Belief = the odds of what is stored, among those of the best contradiction of each other source.

    belief_i = o_i / (1 + o_i + sum over sources s of max over s's memories j that contradict i of
                                max(1, o_j)^(2^(-lead_ij / half_life)) - 1)

    where o are the odds v / (1 - v), and lead_ij is by how many days i was said or confirmed later than j (0 if it was
    not). Of one rival this is Bayes' rule between the two. Against its own source only what was said later counts: a
    correction. Contradictions are those found on write (`Memory.contradicts`).

    Ranked by belief times the greatest similarity among the memory and those that contradict it: they are about one
    thing, so of two that are found together the more believed comes first, and of equals the newer.
    """

    name = "default"

    def __init__(self, half_life_days: float = 30.0) -> None:
        self._half_life_days = half_life_days

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """The beliefs; of memories that stand in no candidate's `contradicts` the stored veracity."""
        return [self._score(candidate, candidates) for candidate in candidates]

    def _score(self, candidate: Candidate, candidates: Sequence[Candidate]) -> Score:
        rivals = [other for other in candidates if contradict(candidate.memory, other.memory)]
        belief = self._belief(candidate.memory, [rival.memory for rival in rivals])
        return Score(belief, belief * max(one.similarity for one in (candidate, *rivals)))

    def _belief(self, memory: Memory, rivals: Sequence[Memory]) -> float:
        voices: dict[tuple[str, str], float] = {}
        for rival in rivals:
            voice = voice_of(rival)
            voices[voice] = max(voices.get(voice, 0.0), self._against(memory, rival))
        against = sum(voices[voice] for voice in sorted(voices))  # sorted: sums of floats depend on their order
        if not against:
            return memory.veracity
        own = math.exp(log_odds(memory.veracity))
        return min(memory.veracity, own / (1.0 + own + against))

    def _against(self, memory: Memory, other: Memory) -> float:
        """What `other` weighs beside the odds of `memory`, at least 0."""
        if voice_of(memory) == voice_of(other) and memory.said_at >= other.said_at:
            return 0.0
        lead = (memory.last_said_at - other.last_said_at) / _SECONDS_PER_DAY
        return math.expm1(max(0.0, log_odds(other.veracity)) * half_life_decay(lead, self._half_life_days))


def voice_of(memory: Memory) -> tuple[str, str]:
    """Who says it: the kind and id of its source; without an id, of its user."""
    return memory.source.kind, memory.source.id or memory.scope.user


def contradict(one: Memory, other: Memory) -> bool:
    """Whether either of two memories is marked as contradicting the other one."""
    return (one.id, one.scope) != (other.id, other.scope) and (
        other.id in one.contradicts or one.id in other.contradicts
    )


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

    Closeness is the cosine of words, and so is support without a judge (as the paper has it). judge: if given, support
    is entailment minus contradiction, and memories without neighbours keep their share of the consensus (our forms).
    source: how far a memory's source is believed, in [0, 1].
    """

    name = "mma"

    def __init__(
        self,
        weights: MMAWeights = PUBLISHED_WEIGHTS,
        *,
        judge: Judge | None = None,
        source: Callable[[Memory], float] = lambda memory: memory.source.reliability,
    ) -> None:
        self._weights, self._judge, self._source = weights, judge, source

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """Belief C(M), ranked by similarity times C(M). Raises JudgeError as the judge does."""
        if not candidates:
            return []
        texts = [candidate.memory.content for candidate in candidates]
        cosines = word_cosines(texts)
        closeness = np.where(cosines >= _LEAST_CLOSENESS, cosines, 0.0)
        support = np.clip(cosines, -1.0, 1.0)
        if self._judge is not None:
            support = entailment_support(texts, self._judge, closeness)
        figure = confidence(
            np.array([self._source(candidate.memory) for candidate in candidates]),
            np.array([temporal_decay(candidate.memory.said_at, now) for candidate in candidates]),
            support,
            closeness,
            self._weights,
            skip_lonely=self._judge is not None,
        )
        return [
            Score(value, candidate.similarity * value, value >= _LEAST_CONFIDENCE)
            for candidate, value in zip(candidates, figure.tolist(), strict=True)
        ]


def entailment_support(texts: Sequence[str], judge: Judge, closeness: NDArray[np.float64]) -> NDArray[np.float64]:
    """sigma_ij = P(j entails i) - P(j contradicts i), float64 [n, n] in [-1, 1], zeros on the diagonal: our form.

    judge: asked with evidence j and claim i, once for all pairs that are close (at least 0.3); the others say nothing
    of each other. A contradiction counts in both directions, as strongly as the stronger. Raises JudgeError.
    """
    size = len(texts)
    pairs = [(i, j) for i in range(size) for j in range(size) if i != j and closeness[i, j] >= _LEAST_CLOSENESS]
    answer = checked(judge.judge([(texts[j], texts[i]) for i, j in pairs]), len(pairs), type(judge).__name__)
    entailed, contradicted = np.zeros((size, size)), np.zeros((size, size))
    for (i, j), row in zip(pairs, answer, strict=True):
        entailed[i, j], contradicted[i, j] = row[SUPPORTED], row[REFUTED]
    return np.asarray(np.clip(entailed - np.maximum(contradicted, contradicted.T), -1.0, 1.0))


class MARKScorer:
    """Ranked by the relevance score (ours, or as_written), believed by the trust score, used while it is retained.

    TS_t, which goes on from TS_{t-1} with every validation, is the veracity of a memory (`first_trust`, `trust_after`).
    """

    name = "mark"

    def __init__(self, weights: mark.MRSWeights = mark.PRESETS["default"], *, as_written: bool = False) -> None:
        self._weights = weights
        self._relevance = mark.relevance_as_written if as_written else mark.relevance

    def score(self, candidates: Sequence[Candidate], now: float) -> list[Score]:
        """Belief TS, ranked by MRS, usable while retained."""
        memories = [candidate.memory for candidate in candidates]
        ranks = self._relevance(
            self._weights,
            np.array([memory.recall_count for memory in memories], dtype=np.int64),
            np.array([(now - memory.created_at) / _SECONDS_PER_DAY for memory in memories]),
            np.array([candidate.similarity for candidate in candidates]),
            np.array([mark.feedback_score(memory.correct_count, memory.incorrect_count) for memory in memories]),
        )
        scores = []
        for memory, rank in zip(memories, ranks.tolist(), strict=True):
            total = max(memory.recall_count, memory.correct_count + memory.incorrect_count)
            trust = self._trust(memory, total)
            kept = mark.retains(trust, mark.persistence(total, memory.incorrect_count))
            scores.append(Score(trust, rank, kept))
        return scores

    def _trust(self, memory: Memory, total: int) -> float:
        return memory.veracity


class SettledMARKScorer(MARKScorer):
    """MARK with the trust that a memory's counts come to if they stay (our form): whatever came when."""

    name = "mark-settled"

    def _trust(self, memory: Memory, total: int) -> float:
        return mark.settled_trust(memory.correct_count, total)
