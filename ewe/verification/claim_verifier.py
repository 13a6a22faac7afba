"""Verification of real text: claims, passages found with them, a judge's word on each, and what it adds up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain

from ewe.errors import EWEError, InvalidRequestError
from ewe.protocols import ClaimExtractor, Retriever
from ewe.text.prompt_injection import addresses_the_reader, spells_control_tokens
from ewe.types import Claim, Evidence, Passage, Verdict, VerificationRequest, VerificationResult
from ewe.verification.combination import Decision, JudgedPiece, combine, is_conflict, source_weight
from ewe.verification.decision import DecisionRule, Reading, evidence_of, mentions
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.protocol import Judge
from ewe.verification.selection import SentenceSelector, Window

EVIDENCE_TOP_K = 4
"""Passages per claim: with more of them more are misjudged than found (scripts/calibrate_verdicts.py)."""

_SHOWN_INSTEAD = 4
"""Pieces of evidence shown for a claim that a complete collection does not mention."""


class ClaimVerifier:
    """Judges the claims of sentences by the passages that a retriever finds with each claim as query.

    evidence_top_k: passages per claim. rule: what a judge's words on a passage add up to. veracity_weighting: whether
    a source counts by its veracity, or all above 0 count fully; passages of veracity 0 never count. assume_complete:
    whether the collection tells everything, so that a claim that nothing in it tells of is refuted.

    Of a passage the judge reads the best sentence, if it says nearly the same as the claim, or else the window of
    sentences that speak of it. Identical claims of a call are judged once, and identical pairs of evidence and claim
    once as long as they are remembered. What passages say is data; the notes of a result name conflicts, and passages
    that give orders to their reader. A call of `verify` raises JudgeError for an answer that is none, or what extractor
    and retriever raise; it gives no verdicts then.
    """

    def __init__(
        self,
        retriever: Retriever,
        extractor: ClaimExtractor,
        judge: Judge,
        rule: DecisionRule,
        *,
        evidence_top_k: int = EVIDENCE_TOP_K,
        veracity_weighting: bool = False,
        assume_complete: bool = False,
    ) -> None:
        if evidence_top_k < 1:
            raise InvalidRequestError(f"evidence_top_k must be at least 1, got {evidence_top_k}")
        self._retriever = retriever
        self._extractor = extractor
        self._judge = CachedJudge(judge)
        self._rule = rule
        self._top_k = evidence_top_k
        self._weighting = veracity_weighting
        self._assume_complete = assume_complete
        self._selector = SentenceSelector()

    def over(self, retriever: Retriever, assume_complete: bool) -> ClaimVerifier:
        """The same extractor, judge and rule over another collection."""
        other = copy(self)
        other._retriever, other._assume_complete = retriever, assume_complete
        return other

    @property
    def judge(self) -> Judge:
        """The judge, which remembers its answers; from any thread, if the one that was given is."""
        return self._judge

    def warm(self) -> None:
        """Has the judge load its model, if it has one."""
        self._judge.warm()

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One result per request, in order; extractor, retriever and judge are called once for all of them.

        A sentence that the extractor fails at has no claims and a note that says why; raises the extractor's error
        where it fails at every sentence.
        """
        extracted = self._extractor.extract(requests)
        if len(extracted) != len(requests):
            raise InvalidRequestError(f"the extractor gave claims for {len(extracted)} of {len(requests)} sentences")
        failed = [one for one in extracted if isinstance(one, EWEError)]
        if failed and len(failed) == len(extracted):
            raise failed[0]
        claims = [() if isinstance(one, EWEError) else one for one in extracted]
        asked = [
            [_Asked(claim.text, _wording(claim, request.sentence)) for claim in group]
            for group, request in zip(claims, requests, strict=True)
        ]
        decisions = self._decide(list(dict.fromkeys(chain(*asked))))
        return [
            VerificationResult(notes=(f"not checked: {one}",))
            if isinstance(one, EWEError)
            else _result(one, [decisions[claim] for claim in group])
            for one, group in zip(extracted, asked, strict=True)
        ]

    def read(self, claims: Sequence[tuple[str, str]]) -> list[list[Reading]]:
        """Per (claim, wording in its sentence) what the judge says of the passages found; it is called once."""
        return [readings for readings, _ in self._read([_Asked(*claim) for claim in claims])]

    def _decide(self, asked: Sequence[_Asked]) -> dict[_Asked, tuple[Decision, list[Passage]]]:
        """Per distinct claim the decision, and all passages that were found for it."""
        decided = {}
        for one, (readings, found) in zip(asked, self._read(asked), strict=True):
            pieces = [self._piece(one, reading) for reading in readings]
            decision = combine(pieces, self._rule.thresholds)
            if self._assume_complete and decision.verdict is Verdict.INCONCLUSIVE:
                weighty = (r for r, piece in zip(readings, pieces, strict=True) if piece.weight > 0)
                is_mentioned = any(mentions(one.wording, reading) for reading in weighty)
                decision = decision if is_mentioned else _refuted_as_absent(pieces)
            decided[one] = decision, found
        return decided

    def _read(self, asked: Sequence[_Asked]) -> list[tuple[list[Reading], list[Passage]]]:
        """Per claim the judged evidence, and all passages that were found and may count."""
        claims = [one.claim for one in asked]
        passages = [
            [scored.passage for scored in found if scored.passage.veracity > 0]
            for found in (self._retriever.retrieve(claims, self._top_k) if claims else [])
        ]
        windows = [self._windows(claim, group) for claim, group in zip(claims, passages, strict=True)]
        chosen = [
            [(window, *evidence_of(one.wording, window)) for window in group]
            for one, group in zip(asked, windows, strict=True)
        ]
        pairs = [(text, claim) for claim, group in zip(claims, chosen, strict=True) for _, _, text in group]
        rows = iter(self._judge.judge(pairs).tolist())
        readings = [[Reading(window, is_near, next(rows)) for window, is_near, _ in group] for group in chosen]
        return list(zip(readings, passages, strict=True))

    def _windows(self, claim: str, passages: Sequence[Passage]) -> list[Window]:
        """What the judge reads of the passages; copies of one text of one source once, empty ones not at all."""
        windows = (self._selector.select(claim, passage) for passage in passages)
        unique = {(window.text, window.passage.source): window for window in windows if window.excerpt.strip()}
        return list(unique.values())

    def _piece(self, asked: _Asked, reading: Reading) -> JudgedPiece:
        passage = reading.window.passage
        weight = source_weight(passage.veracity) if self._weighting else 1.0
        probabilities = self._rule.probabilities(asked.wording, reading, asked.claim)
        return JudgedPiece(passage, reading.window.excerpt, weight, probabilities)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A claim that stands alone, and how the sentence words it."""

    claim: str
    wording: str


def _wording(claim: Claim, sentence: str) -> str:
    """The sentence's own words where they are the claim, with a name in the place of a pronoun; else the claim's."""
    own = sentence[claim.start : claim.end]
    return own if own.strip() == sentence[claim.start :].strip() and claim.end > claim.start else claim.text


def _refuted_as_absent(pieces: Sequence[JudgedPiece]) -> Decision:
    """The decision on a claim that a complete collection does not mention: refuted, by what it says instead."""
    shown = (Evidence(piece.passage, Verdict.REFUTED, 0.0, piece.excerpt) for piece in pieces[:_SHOWN_INSTEAD])
    return Decision(Verdict.REFUTED, 1.0, tuple(shown))


def _result(claims: Sequence[Claim], decided: Sequence[tuple[Decision, list[Passage]]]) -> VerificationResult:
    """The claims of one sentence with their verdicts, and the evidence of each claim."""
    judged = []
    evidence: dict[Evidence, None] = {}
    notes: dict[str, None] = {}
    for claim, (decision, found) in zip(claims, decided, strict=True):
        evidence |= dict.fromkeys(replace(piece, claim=claim.text) for piece in decision.evidence)
        judged.append(decision.of(claim))
        notes |= dict.fromkeys(_notes(claim, decision, found))
    return VerificationResult(tuple(judged), tuple(evidence), tuple(notes))


def _notes(claim: Claim, decision: Decision, found: Sequence[Passage]) -> Iterator[str]:
    if is_conflict(decision):
        yield f"the evidence is in conflict: {claim.text}"
    for passage in found:
        if addresses_the_reader(passage.text):
            yield f"passage {passage.id} gives orders to its reader; the orders were left out"
        if spells_control_tokens(passage.text):
            yield f"passage {passage.id} spells control tokens; they were left out"
