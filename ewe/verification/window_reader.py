"""Reading passage by passage: of each the sentence that says nearly the same as the claim, or a window of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ewe.config.lazy import warm
from ewe.types import Passage
from ewe.verification.claim_reading import ClaimReading, StatedClaim, weight_of
from ewe.verification.combination import JudgedPiece, combine
from ewe.verification.decision import DecisionRule, Reading, evidence_of, mentions
from ewe.verification.judges.protocol import Judge
from ewe.verification.left_out import changes_nothing, leaves_out_words
from ewe.verification.omission_reader import load_reader, still_said
from ewe.verification.selection import SentenceSelector, Window


class WindowReader:
    """For judges that read one piece of evidence at a time; rule: what their word on it adds up to."""

    def __init__(self, judge: Judge, rule: DecisionRule, by_veracity: bool) -> None:
        self._judge = judge
        self._rule = rule
        self._by_veracity = by_veracity
        self._selector = SentenceSelector()

    def read(self, claims: Sequence[StatedClaim], passages: Sequence[Sequence[Passage]]) -> list[ClaimReading]:
        """Per claim a piece for each of its passages."""
        groups = self.readings(claims, passages)
        confirms = iter(
            self._confirms(
                [(claim.wording, one.window) for claim, group in zip(claims, groups, strict=True) for one in group]
            )
        )
        return [
            self._reading(claim, group, [next(confirms) for _ in group])
            for claim, group in zip(claims, groups, strict=True)
        ]

    def warm(self) -> None:
        """Has the judge, and what reads omissions, load their models."""
        warm(self._judge)
        if self._rule.copies_only:
            load_reader()

    def readings(self, claims: Sequence[StatedClaim], passages: Sequence[Sequence[Passage]]) -> list[list[Reading]]:
        """Per claim what the judge says of each passage; it is asked once."""
        windows = [self._windows(claim.text, group) for claim, group in zip(claims, passages, strict=True)]
        chosen = [
            [(window, *evidence_of(claim.wording, window)) for window in group]
            for claim, group in zip(claims, windows, strict=True)
        ]
        pairs = [(text, claim.text) for claim, group in zip(claims, chosen, strict=True) for _, _, text in group]
        rows = iter(self._judge.judge(pairs).tolist())
        return [[Reading(window, is_near, next(rows)) for window, is_near, _ in group] for group in chosen]

    def _windows(self, claim: str, passages: Sequence[Passage]) -> list[Window]:
        """What the judge reads of the passages; copies of one text of one source once, empty ones not at all."""
        windows = (self._selector.select(claim, passage) for passage in passages)
        unique = {(window.text, window.passage.source): window for window in windows if window.excerpt.strip()}
        return list(unique.values())

    def _confirms(self, told: Sequence[tuple[str, Window]]) -> list[bool]:
        """Whether each window may make its wording supported; what is left out is read in one batch."""
        confirms = [self._rule.confirms(wording, window) for wording, window in told]
        asked = [
            at
            for at, (wording, window) in enumerate(told)
            if confirms[at] and self._rule.copies_only and leaves_out_words(wording, window.excerpt)
        ]
        for at, is_said in zip(asked, still_said([(told[at][1].sentence, told[at][0]) for at in asked]), strict=True):
            confirms[at] = is_said
        return confirms

    def _reading(self, claim: StatedClaim, readings: Sequence[Reading], confirms: Sequence[bool]) -> ClaimReading:
        pieces = tuple(map(partial(self._piece, claim), readings, confirms))
        weighty = (one for one, piece in zip(readings, pieces, strict=True) if piece.weight > 0)
        is_mentioned = any(mentions(claim.wording, one) for one in weighty)
        return ClaimReading(combine(pieces, self._rule.thresholds), pieces, is_mentioned)

    def _piece(self, claim: StatedClaim, reading: Reading, confirms: bool) -> JudgedPiece:
        window, weight = reading.window, weight_of(reading.window.passage, self._by_veracity)
        supported, refuted, rest = self._rule.probabilities(claim.wording, reading, claim.text)
        if confirms and self._rule.copies_only and changes_nothing(claim.wording, window.excerpt):
            refuted, rest = 0.0, rest + refuted  # A "not" that is left out was read to be of something else.
        probabilities = supported, refuted, rest
        return JudgedPiece(window.passage, window.excerpt, weight, probabilities, confirms)
