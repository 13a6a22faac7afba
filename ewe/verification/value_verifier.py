"""A verifier without weights: claims are checked by comparing their values with those of retrieved sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ewe.protocols import Retriever
from ewe.text.sentences import SentenceSplitter
from ewe.types import Evidence, Passage, Verdict, VerificationRequest, VerificationResult
from ewe.verification.claims import ParsedClaim, extract_claims
from ewe.verification.comparison import checkable_arguments, compare_frames
from ewe.verification.evidence import EvidenceFinder
from ewe.verification.evidence_weighing import Balance, Decision, Piece, decide, source_weight


class ValueVerifier:
    """Judges claims by names, numbers and dates in evidence of the same subject and relation.

    evidence_top_k: passages per query. veracity_weighting: whether a source counts by its veracity, or all count 1.
    assume_complete: whether the collection tells everything (a closed world): a claim that no credible sentence in it
    states is refuted, and so is another work, prize or post than those in it; without it both stay inconclusive.
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
        return [_result([(claim, self._judge(claim, next(passages))) for claim in group]) for group in claims]

    def _judge(self, claim: ParsedClaim, passages: Sequence[Passage]) -> Decision:
        """The verdict of one claim from all sentences of its passages."""
        frame = claim.frame
        balances = [Balance(self._assume_complete) for _ in range(1 + len(checkable_arguments(frame)))]
        for passage in passages:
            weight = source_weight(passage.veracity) if self._weighting else 1.0
            for sentence in self._finder.read(passage):
                piece = Piece(passage, sentence.text, weight)
                for stated in sentence.frames:
                    for balance, finding in zip(balances, compare_frames(frame, stated), strict=True):
                        balance.add(piece, finding)
        decision = decide(balances[0], balances[1:], frame.negated, frame.restricted)
        if self._assume_complete and _is_unstated(claim, decision, balances[1:]):
            return Decision(Verdict.REFUTED, 1.0)
        return decision


def _is_unstated(claim: ParsedClaim, decision: Decision, values: Sequence[Balance]) -> bool:
    """Whether nothing credible states a value of a plain claim that has no verdict."""
    plain = decision.verdict is Verdict.INCONCLUSIVE and not (claim.frame.negated or claim.frame.restricted)
    return plain and any(not any(piece.weight > 0 for piece in value.supports) for value in values)


def _result(judged: Sequence[tuple[ParsedClaim, Decision]]) -> VerificationResult:
    """The claims of one sentence with their verdicts, and all evidence, each passage, stance and sentence once."""
    claims = []
    evidence: dict[tuple[str, str, str], Evidence] = {}
    for claim, decision in judged:
        for piece in decision.evidence:
            evidence.setdefault((piece.passage.id, piece.stance, piece.excerpt), piece)
        ids = tuple(dict.fromkeys(piece.passage.id for piece in decision.evidence))
        claims.append(replace(claim.claim, verdict=decision.verdict, score=decision.score, evidence_ids=ids))
    return VerificationResult(tuple(claims), tuple(evidence.values()))
