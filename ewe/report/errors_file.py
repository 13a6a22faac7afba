"""Wrong calls of a verifier as pairs to train a judge with: what the evidence says, the claim, and the right label.

Owns: the shape of these lines. Knows `ewe.checked`; the judge's training reads them as its labelled sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ewe.checked import CheckedText
from ewe.report.jsonable import jsonable
from ewe.types import Verdict


def wrong_calls(checked: CheckedText, expected: Verdict) -> Iterator[dict[str, Any]]:
    """One pair per claim that has another verdict than it should, and piece of evidence that speaks for the wrong side.

    Keys: evidence, title, claim, label (what it should have been), given (the verdict it had), score. A claim without
    evidence gives none: there is nothing to learn from.
    """
    for item in checked.sentences:
        for claim in item.sentence.claims:
            if claim.verdict is expected:
                continue
            for piece in item.evidence_of(claim):
                if piece.stance is not expected:
                    pair = {
                        "evidence": piece.excerpt or piece.passage.text,
                        "title": piece.passage.title,
                        "claim": claim.text,
                        "label": expected.value,
                        "given": claim.verdict.value,
                        "score": piece.score,
                    }
                    yield jsonable(pair)
