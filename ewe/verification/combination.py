"""From what a judge says of single pieces of evidence to the verdict on a claim.

Each source is a witness who supports, refutes or leaves open. Its masses are what the judge gives above chance, times
the weight of its veracity; the rest is "unknown" (Shafer's discounting: a source that cannot be believed says
nothing). The sources combine by Dempster's rule. With a, b, c the masses of one source for supported, refuted and
unknown, and products over the sources,

    S = prod(a + c) - prod(c),  R = prod(b + c) - prod(c),  U = prod(c);  each divided by S + R + U.

The result does not depend on the order of the evidence, and a source of weight 0 changes nothing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ewe.types import Claim, Evidence, Passage, Verdict

UNSUPPORTED = "refuted for lack of support, not by contradiction"
"""The reason of a claim that a datastore which tells everything does not bear."""

_MOST_CREDIBLE = 0.99  # Nobody is believed without any doubt.


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, how clear it is in [0, 1], the evidence that decided, and the share of its weight in support.

    reason: that of `Claim`.
    """

    verdict: Verdict
    score: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    support: float = 0.0
    reason: str = ""

    def of(self, claim: Claim) -> Claim:
        """The claim with this verdict."""
        ids = tuple(dict.fromkeys(piece.passage.id for piece in self.evidence))
        return replace(
            claim,
            verdict=self.verdict,
            score=self.score,
            evidence_ids=ids,
            support=self.support,
            reason=self.reason,
        )


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What combined evidence must reach for a verdict, in (0, 1]; floor: the probability below which a piece of
    evidence says nothing, in [0, 1).
    """

    supported: float
    refuted: float
    floor: float


_MOST_CERTAIN = 0.99  # No piece of evidence is beyond all doubt; else two that contradict each other leave nothing.
_MAX_EVIDENCE = 3  # Pieces per stance that a verdict carries,
_SHOWN = 0.5  # none of less than this share of the weightiest one's mass.


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a passage as evidence; weight: how much its source counts, in [0, 1]."""

    passage: Passage
    excerpt: str
    weight: float

    @property
    def source(self) -> str:
        """Who says it; passages without a source speak for themselves."""
        return self.passage.source or self.passage.id


@dataclass(frozen=True, slots=True)
class JudgedPiece(Piece):
    """Evidence with the judge's probabilities (supported, refuted, inconclusive) of the claim.

    confirms: whether it may make a claim supported; else its support only speaks against a refutation.
    """

    probabilities: tuple[float, float, float]
    confirms: bool = True

    @property
    def stance(self) -> Verdict:
        """The side on which it stands, if on any."""
        supported, refuted, _ = self.probabilities
        return Verdict.SUPPORTED if supported >= refuted else Verdict.REFUTED


def combine(pieces: Sequence[JudgedPiece], thresholds: Thresholds) -> Decision:
    """The verdict, its score (0 if inconclusive), and the evidence on both sides.

    The score is the side's share of all mass on the scale of the judge: one piece that counts fully gives its own
    probability, pieces that agree more, conflict less.

    Evidence is in conflict if both sides have a piece that would be believed alone; then both are among the evidence,
    whatever the verdict, and the score is lower than that of either side alone would be.
    """
    supported, refuted, _ = combined(pieces, thresholds.floor)
    verdict, share = Verdict.INCONCLUSIVE, 0.0
    if supported > refuted and supported >= thresholds.supported:
        if combined(map(_confirmed, pieces), thresholds.floor)[0] >= thresholds.supported:
            verdict, share = Verdict.SUPPORTED, supported
    elif refuted > supported and refuted >= thresholds.refuted:
        verdict, share = Verdict.REFUTED, refuted
    score = thresholds.floor + (1.0 - thresholds.floor) * share if share else 0.0
    evidence = tuple(_evidence(pieces, {verdict, *_believed(pieces, thresholds)}, thresholds.floor))
    return Decision(verdict, score, evidence, supported)


def is_conflict(decision: Decision) -> bool:
    """Whether believable evidence stands on both sides of a claim."""
    return {piece.stance for piece in decision.evidence} >= {Verdict.SUPPORTED, Verdict.REFUTED}


def combined(pieces: Iterable[JudgedPiece], floor: float) -> tuple[float, float, float]:
    """The combined masses of supported, refuted and unknown; they sum to 1, all unknown without evidence.

    Of each source the strongest piece on either side counts: chunks and copies of one text are one witness.
    """
    masses: dict[str, tuple[float, float]] = {}
    for piece in pieces:
        supported, refuted = masses.get(piece.source, (0.0, 0.0))
        own = _masses(piece, floor)
        masses[piece.source] = max(supported, own[0]), max(refuted, own[1])
    support, refutation, unknown = 1.0, 1.0, 1.0
    # Sorted, because products of floats depend on their order and a verdict must not.
    for a, b in sorted(masses.values()):
        total = max(1.0, (a + b) / _MOST_CERTAIN)
        a, b = a / total, b / total
        support, refutation, unknown = support * (1 - b), refutation * (1 - a), unknown * (1 - a - b)
    total = support - unknown + (refutation - unknown) + unknown
    return (support - unknown) / total, (refutation - unknown) / total, unknown / total


def _confirmed(piece: JudgedPiece) -> JudgedPiece:
    """The piece without support that does not count."""
    supported, refuted, rest = piece.probabilities
    return piece if piece.confirms else replace(piece, probabilities=(0.0, refuted, rest + supported))


def _masses(piece: JudgedPiece, floor: float) -> tuple[float, float]:
    """What a piece adds to supported and to refuted: probability above the floor, scaled to [0, 0.99], weighted."""
    supported, refuted, _ = (
        piece.weight * min(max(0.0, (side - floor) / (1.0 - floor)), _MOST_CERTAIN) for side in piece.probabilities
    )
    return supported, refuted


def _believed(pieces: Iterable[JudgedPiece], thresholds: Thresholds) -> set[Verdict]:
    """The sides on which a single piece passes the threshold by itself."""
    needed = {Verdict.SUPPORTED: thresholds.supported, Verdict.REFUTED: thresholds.refuted}
    best = {piece: max(_masses(piece, thresholds.floor)) for piece in pieces}
    return {piece.stance for piece, mass in best.items() if mass >= needed[piece.stance]}


def _evidence(pieces: Sequence[JudgedPiece], stances: set[Verdict], floor: float) -> Iterable[Evidence]:
    """The strongest pieces on the given sides, each sentence once; none without any mass."""
    for stance in (Verdict.SUPPORTED, Verdict.REFUTED):
        if stance not in stances:
            continue
        masses = {piece: max(_masses(piece, floor)) for piece in pieces if piece.stance is stance}
        least = _SHOWN * max(masses.values(), default=0.0)
        # By name where masses are equal, so that the order of the evidence does not matter.
        ranked = sorted(
            (piece for piece in masses if masses[piece] > least),
            key=lambda piece: (-masses[piece], piece.passage.id, piece.excerpt),
        )
        unique: dict[tuple[str, str], JudgedPiece] = {}
        for piece in ranked:
            unique.setdefault((piece.passage.id, piece.excerpt), piece)
        for piece in list(unique.values())[:_MAX_EVIDENCE]:
            yield Evidence(piece.passage, stance, piece.weight * max(piece.probabilities[:2]), piece.excerpt)


def source_weight(veracity: float) -> float:
    """What a source of this veracity adds to its side, in [0, 1]: the log-odds that it is right, over their greatest.

    Independent sources add up (naive Bayes); one that is wrong as often as right, or more often, adds nothing.
    """
    bounded = min(veracity, _MOST_CREDIBLE)
    return max(0.0, _log_odds(bounded)) / _log_odds(_MOST_CREDIBLE) if bounded > 0 else 0.0


def _log_odds(probability: float) -> float:
    return math.log(probability / (1.0 - probability))
