"""What is known of a text's sentences: verdicts, refuted wordings, and the checks under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ewe.engine.sampling_rows import Token
from ewe.engine.workers import Job
from ewe.memory.working_memory import MemorySnapshot
from ewe.types import Claim, Verdict, VerificationResult


@dataclass(frozen=True, slots=True)
class Attempt:
    """One refuted wording of a sentence, kept so that the best one can be put back."""

    text: str
    tokens: tuple[Token, ...]
    state: SentenceState

    @property
    def rank(self) -> tuple[int, float]:
        """Higher is better: fewer refuted claims, then a larger supported share."""
        refuted = sum(claim.verdict is Verdict.REFUTED for claim in self.state.claims)
        return -refuted, self.state.score


@dataclass(frozen=True, slots=True)
class SentenceState:
    """What checking found about one completed sentence, or why it was not checked."""

    verdict: Verdict = Verdict.NOT_CHECKED
    score: float = 0.0
    claims: tuple[Claim, ...] = ()
    reason: str = ""

    @property
    def support(self) -> float:
        """How much of the evidence supports the sentence, in [0, 1]: the mean over its claims."""
        return sum(claim.support for claim in self.claims) / len(self.claims) if self.claims else 0.0


def described(result: VerificationResult) -> dict[str, Any]:
    """What the trace tells of a check's result."""
    evidence = [
        {
            "id": item.passage.id,
            "title": item.passage.title,
            "source": item.passage.source,
            "stance": item.stance.value,
            "score": item.score,
            "excerpt": item.excerpt,
        }
        for item in result.evidence
    ]
    claims = [
        {"text": claim.text, "verdict": claim.verdict.value, "score": claim.score, "evidence": claim.evidence_ids}
        for claim in result.claims
    ]
    return {"verdict": result.verdict.value, "score": result.score, "claims": claims, "evidence": evidence}


@dataclass(slots=True, eq=False)
class Check:
    """A verification under way: which sentences, and what to return to if one is refuted.

    retrieved: the sequence's count of sentences dealt with by retrieval; snapshot: the memory when the pause was over
    (optimistic mode; in blocking mode it cannot have changed).
    """

    job: Job
    sentences: tuple[int, ...]
    retrieved: int
    snapshot: MemorySnapshot | None = None
