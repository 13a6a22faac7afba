"""The value comparison as a verifier, and as a judge of pairs: names, numbers and dates of one subject and relation.

The last resort where no model can run, and the measure that a model has to beat.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ewe.config import VerificationConfig
from ewe.protocols import Retriever
from ewe.text.sentences import SentenceSplitter
from ewe.types import Evidence, Passage, Verdict, VerificationRequest, VerificationResult
from ewe.verification.combination import Decision, Piece, source_weight
from ewe.verification.judges.protocol import COLUMNS, INCONCLUSIVE, Pair
from ewe.verification.value_comparison.claims import ParsedClaim, extract_claims
from ewe.verification.value_comparison.comparison import checkable_arguments, compare_statements
from ewe.verification.value_comparison.evidence_finder import EvidenceFinder, ReadSentence, read_sentences
from ewe.verification.value_comparison.value_verdict import ValueEvidence, decide


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
        pieces = [
            (Piece(passage, sentence.text, source_weight(passage.veracity) if self._weighting else 1.0), sentence)
            for passage in passages
            for sentence in self._finder.read(passage)
        ]
        decision, values = _decide(claim, pieces, self._assume_complete)
        if self._assume_complete and _is_unstated(claim, decision, values):
            return Decision(Verdict.REFUTED, 1.0)
        return decision


def make_value_verifier(
    retriever: Retriever, settings: VerificationConfig, veracity_weighting: bool, assume_complete: bool
) -> ValueVerifier:
    """The verifier "values": compares names, numbers and dates; of the settings only evidence_top_k plays a part."""
    return ValueVerifier(retriever, settings.evidence_top_k or 16, veracity_weighting, assume_complete)


def _decide(
    claim: ParsedClaim, pieces: Iterable[tuple[Piece, ReadSentence]], assume_complete: bool
) -> tuple[Decision, Sequence[ValueEvidence]]:
    """The verdict of a claim from sentences, and what they say of each of its values."""
    statement = claim.statement
    found = [ValueEvidence(assume_complete) for _ in range(1 + len(checkable_arguments(statement)))]
    for piece, sentence in pieces:
        for stated in sentence.statements:
            for value, finding in zip(found, compare_statements(statement, stated), strict=True):
                value.add(piece, finding)
    return decide(found[0], found[1:], statement.negated, statement.restricted), found[1:]


def _is_unstated(claim: ParsedClaim, decision: Decision, values: Sequence[ValueEvidence]) -> bool:
    """Whether nothing credible states a value of a plain claim that has no verdict."""
    plain = decision.verdict is Verdict.INCONCLUSIVE and not (claim.statement.negated or claim.statement.restricted)
    return plain and any(not any(piece.weight > 0 for piece in value.supports) for value in values)


def _result(judged: Sequence[tuple[ParsedClaim, Decision]]) -> VerificationResult:
    """The claims of one sentence with their verdicts, and all evidence, each passage, stance and sentence once."""
    claims = []
    evidence: dict[tuple[str, str, str], Evidence] = {}
    for claim, decision in judged:
        for piece in decision.evidence:
            evidence.setdefault((piece.passage.id, piece.stance, piece.excerpt), piece)
        claims.append(decision.of(claim.claim))
    return VerificationResult(tuple(claims), tuple(evidence.values()))


_TITLE_LENGTH = 100


class ValueJudge:
    """Refuted if any value of the claim is contradicted, supported if all are stated, else inconclusive.

    Rows are 1 at the verdict. Evidence of the form "Title: text" is read under its title.
    """

    def __init__(self) -> None:
        self._splitter = SentenceSplitter()

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32 [pairs, 3], one-hot: supported, refuted, inconclusive."""
        rows = np.zeros((len(pairs), 3), np.float32)
        for index, (evidence, claim) in enumerate(pairs):
            rows[index, COLUMNS.index(self._verdict(evidence, claim))] = 1.0
        return rows

    def _verdict(self, evidence: str, claim: str) -> Verdict:
        claims = extract_claims(VerificationRequest("", "", claim), self._splitter)
        if not claims:
            return COLUMNS[INCONCLUSIVE]
        title, mark, text = evidence.partition(": ")
        titled = bool(mark) and len(title) <= _TITLE_LENGTH and title[-1:] not in ".!?"
        passage = Passage("evidence", text, title) if titled else Passage("evidence", evidence)
        pieces = [(Piece(passage, one.text, 1.0), one) for one in read_sentences(passage, self._splitter)]
        verdicts = [_decide(parsed, pieces, assume_complete=False)[0].verdict for parsed in claims]
        if Verdict.REFUTED in verdicts:
            return Verdict.REFUTED
        return Verdict.SUPPORTED if set(verdicts) == {Verdict.SUPPORTED} else Verdict.INCONCLUSIVE
