"""From what single sentences say about the values of a claim to its verdict."""

from collections.abc import Iterable, Sequence

from ewe.types import Evidence, Verdict
from ewe.verification.combination import Decision, Piece
from ewe.verification.value_comparison.comparison import Finding, Stance
from ewe.verification.value_comparison.values import Agreement, Value, compare

_PREVAILS = 1.5  # One side wins if its weight is this many times the other's; in between they are in conflict.
_MAX_EVIDENCE = 3  # Pieces of evidence per value that a verdict carries.


class ValueEvidence:
    """What all evidence says about one value.

    Other values in a slot that may hold several count against the claim only where the collection is taken to be
    complete, and then only if the slot holds one value in practice: no source gives two.
    """

    def __init__(self, assume_complete: bool) -> None:
        self._assume_complete = assume_complete
        self.supports: list[Piece] = []
        self._contradicting: list[Piece] = []
        self._differing: list[Piece] = []
        self._others: dict[str, list[Value]] = {}

    def add(self, piece: Piece, finding: Finding) -> None:
        """Account for one finding."""
        if finding.stance is Stance.STATES:
            self.supports.append(piece)
        elif finding.stance is Stance.CONTRADICTS:
            self._contradicting.append(piece)
        elif finding.stance is Stance.DIFFERS and self._assume_complete:
            self._differing.append(piece)
            self._others.setdefault(piece.source, []).extend(finding.others)

    def opposing(self) -> list[Piece]:
        """The pieces that speak against the value; not those of a source that states it elsewhere: it knows of both."""
        stated = {piece.source for piece in self.supports}
        differing = [] if stated and self._holds_several(stated) else self._differing
        return [piece for piece in [*self._contradicting, *differing] if piece.source not in stated]

    def _holds_several(self, stated: set[str]) -> bool:
        """Whether a source gives two values for the slot: two others, or the claim's and another."""
        return any(
            source in stated or any(compare(others[0], other) is Agreement.DIFFERENT for other in others)
            for source, others in self._others.items()
        )

    def verdict(self) -> tuple[Verdict, float]:
        """The verdict and its share of all weight, in [0, 1].

        A side needs more weight than the other by a margin, and a source at least as credible as the other's best.
        Copies of one source count once.
        """
        supporting, refuting = _weights(self.supports), _weights(self.opposing())
        sides = ((refuting, supporting, Verdict.REFUTED), (supporting, refuting, Verdict.SUPPORTED))
        for mine, other, verdict in sides:
            total, against = sum(mine), sum(other)
            if total > 0 and max(mine) >= max(other, default=0.0) and total >= _PREVAILS * against:
                return verdict, total / (total + against)
        return Verdict.INCONCLUSIVE, 0.0


def decide(subject: ValueEvidence, values: Sequence[ValueEvidence], negated: bool, restricted: bool) -> Decision:
    """The verdict of a claim: refuted if a value (or the subject) is, supported if all values are.

    A negated claim ("not in 1931") is refuted by what states all its values; that others are stated settles nothing.
    Nothing settles a restricted one ("only").
    """
    found = [value.verdict() for value in (subject, *values)]
    supported = bool(values) and all(verdict is Verdict.SUPPORTED for verdict, _ in found[1:])
    if restricted or (negated and not supported):
        return Decision(Verdict.INCONCLUSIVE)
    refuting = [share for verdict, share in found if verdict is Verdict.REFUTED]
    if refuting:
        score = max(refuting)
        pieces = (piece for value in (subject, *values) for piece in _best(value, Verdict.REFUTED))
        return Decision(Verdict.REFUTED, score, _evidence(pieces, Verdict.REFUTED, score))
    if not supported:
        return Decision(Verdict.INCONCLUSIVE)
    verdict = Verdict.REFUTED if negated else Verdict.SUPPORTED
    score = min(share for _, share in found[1:])
    pieces = (piece for value in values for piece in _best(value, Verdict.SUPPORTED))
    return Decision(verdict, score, _evidence(pieces, verdict, score))


def _weights(pieces: Sequence[Piece]) -> list[float]:
    """The greatest weight of each source."""
    best: dict[str, float] = {}
    for piece in pieces:
        best[piece.source] = max(best.get(piece.source, 0.0), piece.weight)
    return list(best.values())


def _best(value: ValueEvidence, verdict: Verdict) -> list[Piece]:
    """The weightiest pieces behind a value's verdict, if it is this one."""
    if value.verdict()[0] is not verdict:
        return []
    pieces = value.opposing() if verdict is Verdict.REFUTED else value.supports
    return sorted(pieces, key=lambda piece: -piece.weight)[:_MAX_EVIDENCE]


def _evidence(pieces: Iterable[Piece], verdict: Verdict, score: float) -> tuple[Evidence, ...]:
    """The deciding sentences, each once."""
    unique = {(piece.passage.id, piece.excerpt): piece for piece in pieces}
    return tuple(Evidence(p.passage, verdict, score * p.weight, p.excerpt) for p in unique.values())
