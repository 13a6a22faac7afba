"""The value comparison as a judge of pairs: names, numbers and dates of the same subject and relation.

The last resort where no model can run, and the measure that a model has to beat.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage, Verdict, VerificationRequest
from ewe.verification.claims import ParsedClaim, extract_claims
from ewe.verification.comparison import checkable_arguments, compare_frames
from ewe.verification.evidence import read_sentences
from ewe.verification.evidence_weighing import Balance, Decision, Piece, decide
from ewe.verification.judges.protocol import COLUMNS, INCONCLUSIVE, Pair, checked

_TITLE_LENGTH = 100


class ValueJudge:
    """Refuted if any value of the claim is contradicted, supported if all are stated, else inconclusive.

    Rows are 1 at the verdict. Evidence of the form "Title: text" is read under its title.
    """

    def __init__(self) -> None:
        self._splitter = SentenceSplitter()

    def judge(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32 [pairs, 3], one-hot: supported, refuted, inconclusive."""
        rows = np.zeros((len(pairs), 3))
        for index, (evidence, claim) in enumerate(pairs):
            rows[index, COLUMNS.index(self._verdict(evidence, claim))] = 1.0
        return checked(rows, len(pairs), "values")

    def _verdict(self, evidence: str, claim: str) -> Verdict:
        claims = extract_claims(VerificationRequest("", "", claim), self._splitter)
        if not claims:
            return COLUMNS[INCONCLUSIVE]
        title, mark, text = evidence.partition(": ")
        titled = bool(mark) and len(title) <= _TITLE_LENGTH and title[-1:] not in ".!?"
        passage = Passage("evidence", text, title) if titled else Passage("evidence", evidence)
        verdicts = [self._decide(parsed, passage).verdict for parsed in claims]
        if Verdict.REFUTED in verdicts:
            return Verdict.REFUTED
        return Verdict.SUPPORTED if set(verdicts) == {Verdict.SUPPORTED} else Verdict.INCONCLUSIVE

    def _decide(self, claim: ParsedClaim, passage: Passage) -> Decision:
        balances = [Balance(assume_complete=False) for _ in range(1 + len(checkable_arguments(claim.frame)))]
        for sentence in read_sentences(passage, self._splitter):
            for stated in sentence.frames:
                for balance, finding in zip(balances, compare_frames(claim.frame, stated), strict=True):
                    balance.add(Piece(passage, sentence.text, 1.0), finding)
        return decide(balances[0], balances[1:], claim.frame.negated, claim.frame.restricted)
