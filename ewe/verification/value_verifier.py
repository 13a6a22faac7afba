"""A verifier without weights: claims are checked by comparing their values with those of retrieved sentences.

Owns: how the findings of several sources become a verdict. Knows claims, evidence, comparison; no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ewe.protocols import Retriever
from ewe.text.sentences import SentenceSplitter
from ewe.types import Claim, Evidence, Passage, Verdict, VerificationRequest, VerificationResult
from ewe.verification.claims import ParsedClaim, extract_claims
from ewe.verification.comparison import Finding, Stance, checkable_arguments, compare_frames
from ewe.verification.evidence import EvidenceFinder, ReadSentence
from ewe.verification.values import Agreement, Value, compare

_CREDIBLE = 0.5  # Sources below this decide nothing by themselves.
_PREVAILS = 1.5  # One side wins if its weight is this many times the other's; in between they are in conflict.
_MAX_EVIDENCE = 3  # Pieces of evidence per claim and stance that a result carries.


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence of a passage and what it says about one value of a claim."""

    passage: Passage
    sentence: ReadSentence
    weight: float


class ValueVerifier:
    """Judges claims by names, numbers and dates in evidence of the same subject and relation.

    evidence_top_k: passages per query. veracity_weighting: whether a source counts by its veracity, or all count 1.
    assume_complete: whether the collection tells everything (a closed world): what nothing in it states is refuted, and
    so is another work, prize or post than those in it; without it both stay inconclusive.
    """

    def __init__(
        self,
        retriever: Retriever,
        evidence_top_k: int = 16,
        veracity_weighting: bool = False,
        assume_complete: bool = False,
    ) -> None:
        self._splitter = SentenceSplitter()
        self._finder = EvidenceFinder(retriever, evidence_top_k, self._splitter)
        self._weighting = veracity_weighting
        self._assume_complete = assume_complete

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One result per request, in order; the retriever is called once for all of them."""
        claims = [extract_claims(request, self._splitter) for request in requests]
        passages = iter(self._finder.find([claim for group in claims for claim in group]))
        return [self._result([self._judge(claim, next(passages)) for claim in group]) for group in claims]

    def _result(self, judged: Sequence[_Judged]) -> VerificationResult:
        """The claims of one sentence with all their evidence, each passage and stance once."""
        evidence: dict[tuple[str, str, str], Evidence] = {}
        for item in judged:
            for piece in item.evidence:
                evidence.setdefault((piece.passage.id, piece.stance, piece.excerpt), piece)
        return VerificationResult(tuple(item.claim for item in judged), tuple(evidence.values()))

    def _judge(self, claim: ParsedClaim, passages: Sequence[Passage]) -> _Judged:
        """The verdict of one claim: refuted if one of its values is, supported if all are."""
        balances = [_Balance(self._assume_complete) for _ in range(1 + len(checkable_arguments(claim.frame)))]
        for passage in passages:
            weight = passage.veracity if self._weighting else 1.0
            for sentence in self._finder.read(passage):
                piece = _Piece(passage, sentence, weight)
                for frame in sentence.frames:
                    for balance, finding in zip(balances, compare_frames(claim.frame, frame), strict=True):
                        balance.add(piece, finding)
        # The subject is first. It can be refuted ("X wrote Emma"), but stating it supports nothing by itself.
        verdicts = [balance.verdict() for balance in balances]
        verdict = Verdict.INCONCLUSIVE
        if any(found is Verdict.REFUTED for found, _ in verdicts):
            verdict = Verdict.REFUTED
        elif all(found is Verdict.SUPPORTED for found, _ in verdicts[1:]):
            verdict = Verdict.SUPPORTED
        elif self._assume_complete and any(not balance.supports for balance in balances[1:]):
            return _Judged(replace(claim.claim, verdict=Verdict.REFUTED, score=1.0), ())
        score = _score(verdict, verdicts if verdict is Verdict.REFUTED else verdicts[1:])
        evidence = _evidence(verdict, balances if verdict is Verdict.REFUTED else balances[1:], score)
        ids = tuple(dict.fromkeys(piece.passage.id for piece in evidence))
        return _Judged(replace(claim.claim, verdict=verdict, score=score, evidence_ids=ids), evidence)


@dataclass(frozen=True, slots=True)
class _Judged:
    claim: Claim
    evidence: tuple[Evidence, ...]


class _Balance:
    """What all evidence says about one value.

    Other values in a slot that may hold several count against the claim only where the collection is taken to be
    complete, and then only if the slot holds one value in practice: no source gives two.
    """

    def __init__(self, assume_complete: bool) -> None:
        self._assume_complete = assume_complete
        self.supports: list[_Piece] = []
        self._contradicting: list[_Piece] = []
        self._differing: list[_Piece] = []
        self._others: dict[str, list[Value]] = {}

    def add(self, piece: _Piece, finding: Finding) -> None:
        """Account for one finding."""
        if finding.stance is Stance.STATES:
            self.supports.append(piece)
        elif finding.stance is Stance.CONTRADICTS:
            self._contradicting.append(piece)
        elif finding.stance is Stance.DIFFERS and self._assume_complete:
            self._differing.append(piece)
            self._others.setdefault(_source(piece), []).extend(finding.others)

    def opposing(self) -> list[_Piece]:
        """The pieces that speak against the value; not those of a source that states it elsewhere: it knows of both."""
        stated = {_source(piece) for piece in self.supports}
        differing = [] if self._holds_several(stated) and _weights(self.supports) else self._differing
        return [piece for piece in [*self._contradicting, *differing] if _source(piece) not in stated]

    def _holds_several(self, stated: set[str]) -> bool:
        """Whether a source gives two values for the slot: two others, or the claim's and another."""
        return any(
            source in stated or any(compare(others[0], other) is Agreement.DIFFERENT for other in others)
            for source, others in self._others.items()
        )

    def verdict(self) -> tuple[Verdict, float]:
        """The verdict and its share of all weight, in [0, 1].

        A side needs a credible source, more weight than the other by a margin, and a source at least as credible as
        the other's best. Copies of one source count once.
        """
        supporting, refuting = _weights(self.supports), _weights(self.opposing())
        for mine, other, verdict in (
            (refuting, supporting, Verdict.REFUTED),
            (supporting, refuting, Verdict.SUPPORTED),
        ):
            total, against = sum(mine), sum(other)
            if mine and max(mine) >= max(_CREDIBLE, *other, 0) and total >= _PREVAILS * against:
                return verdict, total / (total + against)
        return Verdict.INCONCLUSIVE, 0.0


def _weights(pieces: Sequence[_Piece]) -> list[float]:
    """The greatest weight of each source."""
    best: dict[str, float] = {}
    for piece in pieces:
        best[_source(piece)] = max(best.get(_source(piece), 0.0), piece.weight)
    return list(best.values())


def _source(piece: _Piece) -> str:
    return piece.passage.source or piece.passage.id


def _score(verdict: Verdict, verdicts: Sequence[tuple[Verdict, float]]) -> float:
    """How clear the verdict is, in [0, 1]: its clearest value if refuted, its least clear one if supported."""
    shares = [share for found, share in verdicts if found is verdict]
    if verdict is Verdict.INCONCLUSIVE or not shares:
        return 0.0
    return max(shares) if verdict is Verdict.REFUTED else min(shares)


def _evidence(verdict: Verdict, balances: Sequence[_Balance], score: float) -> tuple[Evidence, ...]:
    """The deciding sentences of a claim: those that refute it, or those that support its values."""
    if verdict is Verdict.INCONCLUSIVE:
        return ()
    found: dict[tuple[str, str], Evidence] = {}
    for balance in balances:
        if balance.verdict()[0] is not verdict:
            continue
        pieces = balance.opposing() if verdict is Verdict.REFUTED else balance.supports
        for piece in sorted(pieces, key=lambda piece: -piece.weight)[:_MAX_EVIDENCE]:
            key = (piece.passage.id, piece.sentence.text)
            found.setdefault(key, Evidence(piece.passage, verdict, score * piece.weight, piece.sentence.text))
    return tuple(found.values())
