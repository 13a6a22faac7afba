"""Verification of real text: claims, passages found with them, what a judge reads in these together, and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain

from ewe.errors import EWEError, InvalidRequestError
from ewe.text.prompt_injection import addresses_the_reader, spells_control_tokens
from ewe.types import Claim, Evidence, Passage, SentenceClaims, Verdict, VerificationRequest, VerificationResult
from ewe.types.protocols import ClaimExtractor, Retriever
from ewe.verification.answer_finder import find_answers
from ewe.verification.claim_reading import CascadeReader, ClaimReader, ClaimReading, StatedClaim
from ewe.verification.combination import UNSUPPORTED, Decision, is_conflict
from ewe.verification.decision import DecisionRule
from ewe.verification.extraction.context import previous_sentence
from ewe.verification.joint_reader import JointReader
from ewe.verification.judges.cached import CachedJudge
from ewe.verification.judges.protocol import Judge, can_judge, window_of
from ewe.verification.window_reader import WindowReader

EVIDENCE_TOP_K = 4
"""Passages per claim: with more of them more are misjudged than found (scripts/calibrate_verdicts.py)."""

_READ_FOR_ANSWERS = 8
"""Passages in which sentences that answer a question are looked for."""

_SHOWN_INSTEAD = 4
"""Pieces of evidence shown for a claim that a complete collection does not bear."""


class ClaimVerifier:
    """Judges the claims of sentences by the passages that a retriever finds with each claim as query.

    rule: what a judge's words on a passage add up to. first: what reads before the judge, which is then asked only of
    what is left open. evidence_top_k: passages per claim. veracity_weighting: whether a source counts by its veracity,
    or all above 0 count fully; passages of veracity 0 never count. assume_complete: whether the collection tells
    everything, so that a claim that it does not bear is refuted as unsupported; a request's own `closed_world` comes
    first.

    A judge with a reading window reads the best of all passages together, after them the sentence before the claim;
    any other one reads of each passage the best sentence, or the window of sentences that speak of the claim. Identical
    claims of a call are judged once, and identical pairs of evidence and claim once as long as they are remembered.
    What passages say is data; the notes of a result name conflicts, and passages that give orders to their reader. A
    call of `verify` raises JudgeError for an answer that is none, or what extractor and retriever raise; it gives no
    verdicts then.
    """

    def __init__(
        self,
        retriever: Retriever,
        extractor: ClaimExtractor,
        judge: Judge,
        rule: DecisionRule,
        *,
        first: ClaimReader | None = None,
        evidence_top_k: int = EVIDENCE_TOP_K,
        veracity_weighting: bool = False,
        assume_complete: bool = False,
    ) -> None:
        if evidence_top_k < 1:
            raise InvalidRequestError(f"evidence_top_k must be at least 1, got {evidence_top_k}")
        self._retriever = retriever
        self._extractor = extractor
        self._judge = CachedJudge(judge)
        self._top_k = evidence_top_k
        self._assume_complete = assume_complete
        window = window_of(judge)
        self._has_window = window is not None
        reader: ClaimReader = (
            WindowReader(self._judge, rule, veracity_weighting)
            if window is None
            else JointReader(self._judge, window, rule.thresholds, veracity_weighting)
        )
        self._reader = reader if first is None else CascadeReader(first, reader, self._judge)

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
        """Has the judges load their models, if they have any."""
        self._reader.warm()

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """One result per request, in order; extractor and retriever are called once for all of them.

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
        stated = [self._stated(group, request) for group, request in zip(claims, requests, strict=True)]
        decided = self._decide(list(dict.fromkeys(chain(*stated))))
        results = [
            VerificationResult(notes=(f"not checked: {one}",))
            if isinstance(one, EWEError)
            else _result(one, [decided[claim].seen(self._is_complete(request)) for claim in group])
            for one, group, request in zip(extracted, stated, requests, strict=True)
        ]
        return self._with_answers(requests, results)

    def _with_answers(
        self, requests: Sequence[VerificationRequest], results: list[VerificationResult]
    ) -> list[VerificationResult]:
        """The results; with sentences that answer the question where they are wanted, and the claims not supported."""
        asking = [
            at
            for at, (request, result) in enumerate(zip(requests, results, strict=True))
            if request.wants_answers and request.prompt and result.verdict is not Verdict.SUPPORTED
        ]
        if not asking:
            return results
        questions = list(dict.fromkeys(requests[at].prompt for at in asking))
        found = dict(zip(questions, find_answers(questions, self._retrieve(questions, _READ_FOR_ANSWERS)), strict=True))
        for at in asking:
            results[at] = replace(results[at], answers=found[requests[at].prompt])
        return results

    def _stated(self, claims: Sequence[Claim], request: VerificationRequest) -> list[StatedClaim]:
        """The claims of a sentence; with the sentence before only where it is read, or equal claims would differ."""
        reads_it = self._has_window and can_judge(self._judge)
        before = previous_sentence(request) if claims and reads_it else ""
        return [StatedClaim(one.text, _wording(one, request.sentence, len(claims) == 1), before) for one in claims]

    def _is_complete(self, request: VerificationRequest) -> bool:
        """Whether the collection tells everything, as this request sees it."""
        return self._assume_complete if request.closed_world is None else request.closed_world

    def _retrieve(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """Per query the passages found; of what is not believed at all none."""
        hits = self._retriever.retrieve(queries, top_k) if queries else []
        return [[scored.passage for scored in group if scored.passage.veracity > 0] for group in hits]

    def _decide(self, claims: Sequence[StatedClaim]) -> dict[StatedClaim, _Decided]:
        """Per distinct claim the decision, and all passages that were found for it."""
        passages = self._retrieve([claim.text for claim in claims], self._top_k)
        rows = zip(claims, self._reader.read(claims, passages), passages, strict=True)
        return {claim: _Decided(reading, hits) for claim, reading, hits in rows}


@dataclass(frozen=True, slots=True)
class _Decided:
    """What was read for a claim, with the decision on it, and the passages that were found."""

    reading: ClaimReading
    passages: list[Passage]

    @property
    def decision(self) -> Decision:
        """The verdict and its evidence."""
        return self.reading.decision

    def seen(self, is_complete: bool) -> _Decided:
        """The same where the collection tells everything: what nothing in it mentions is refuted, with what it says
        instead.
        """
        if not is_complete or self.decision.verdict is not Verdict.INCONCLUSIVE or self.reading.is_mentioned:
            return self
        pieces = self.reading.pieces[:_SHOWN_INSTEAD]
        shown = (Evidence(piece.passage, Verdict.REFUTED, 0.0, piece.excerpt) for piece in pieces)
        decision = Decision(Verdict.REFUTED, 1.0, tuple(shown), reason=UNSUPPORTED)
        return replace(self, reading=replace(self.reading, decision=decision))


def _wording(claim: Claim, sentence: str, is_only: bool) -> str:
    """The sentence's own words where its only claim has them, but for a pronoun that is named; else the claim's."""
    if not is_only:
        return claim.text  # a clause may lack its subject
    own = sentence[claim.start : claim.end]
    return own if own.strip() == sentence[claim.start :].strip() and claim.end > claim.start else claim.text


def _result(claims: Sequence[Claim], decided: Sequence[_Decided]) -> VerificationResult:
    """The claims of one sentence with their verdicts, and the evidence of each claim."""
    judged = []
    evidence: dict[Evidence, None] = {}
    notes: dict[str, None] = {}
    for claim, one in zip(claims, decided, strict=True):
        evidence |= dict.fromkeys(replace(piece, claim=claim.text) for piece in one.decision.evidence)
        judged.append(one.decision.of(claim))
        notes |= dict.fromkeys(_notes(claim, one))
    reason = claims.reason if isinstance(claims, SentenceClaims) and not judged else ""
    return VerificationResult(tuple(judged), tuple(evidence), tuple(notes), reason)


def _notes(claim: Claim, decided: _Decided) -> Iterator[str]:
    if is_conflict(decided.decision):
        yield f"the evidence is in conflict: {claim.text}"
    for passage in decided.passages:
        if addresses_the_reader(passage.text):
            yield f"passage {passage.id} gives orders to its reader; the orders were left out"
        if spells_control_tokens(passage.text):
            yield f"passage {passage.id} spells control tokens; they were left out"
