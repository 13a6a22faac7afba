"""What is known of a text's sentences: verdicts and rejected wordings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ewe.types import Claim, Verdict, VerificationResult

if TYPE_CHECKING:
    from ewe.engine.sampling.sampler import Token


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rejected wording of a sentence, kept so that the best one can be put back."""

    text: str
    tokens: tuple[Token, ...]
    state: SentenceState

    @property
    def rank(self) -> tuple[int, int, float, float]:
        """Higher is better: fewer contradicted claims, fewer refuted ones, a larger supported share, likelier words.

        A claim that is refuted for a reason, like a lack of support, is not contradicted. Likelihood: the mean
        log-probability of a token in tenths of a nat, so that noise decides nothing.
        """
        refuted = [claim for claim in self.state.claims if claim.verdict is Verdict.REFUTED]
        contradicted = sum(not claim.reason for claim in refuted)
        logprob = sum(token.logprob for token in self.tokens) / max(len(self.tokens), 1)
        return -contradicted, -len(refuted), self.state.score, round(logprob, 1)


@dataclass(frozen=True, slots=True)
class SentenceState:
    """What checking found about one completed sentence, or why it was not checked.

    quotes: the id of the passage whose sentence it is, word for word, where it was put into the text.
    """

    verdict: Verdict = Verdict.NOT_CHECKED
    score: float = 0.0
    claims: tuple[Claim, ...] = ()
    reason: str = ""
    quotes: str = ""

    @property
    def support(self) -> float:
        """How much of the evidence supports the sentence, in [0, 1]: the mean over its claims."""
        return sum(claim.support for claim in self.claims) / len(self.claims) if self.claims else 0.0


def fields_of(record: object, *names: str) -> dict[str, Any]:
    """Some fields of a record, as the trace tells them."""
    return {name: getattr(record, name) for name in names}


def described(result: VerificationResult) -> dict[str, Any]:
    """What the trace tells of a check's result."""
    evidence = [
        {
            **fields_of(item.passage, "id", "title", "source"),
            "stance": item.stance.value,
            **fields_of(item, "score", "excerpt"),
        }
        for item in result.evidence
    ]
    claims = [
        {
            "text": claim.text,
            "verdict": claim.verdict.value,
            "score": claim.score,
            "evidence": claim.evidence_ids,
            "reason": claim.reason,
        }
        for claim in result.claims
    ]
    return {"verdict": result.verdict.value, "score": result.score, "claims": claims, "evidence": evidence}


@dataclass(slots=True)
class Progress:
    """How many sentences retrieval and verification have dealt with."""

    retrieved: int = 0
    verified: int = 0


@dataclass(slots=True)
class FeedbackState:
    """What is known of one sequence's sentences.

    states: of each sentence. attempts: rejected wordings by the code point at which the sentence starts. rewinds: how
    often the text went back. retry_sentence: index of the sentence that is drawn at a raised temperature.
    """

    progress: Progress = field(default_factory=Progress)
    states: list[SentenceState | None] = field(default_factory=list)
    attempts: dict[int, list[Attempt]] = field(default_factory=dict)
    rewinds: int = 0
    retry_sentence: int | None = None

    def state_of(self, index: int) -> SentenceState | None:
        """What is known of a sentence, None while it is open."""
        return self.states[index] if index < len(self.states) else None

    def attempt_at(self, start: int) -> int:
        """Which attempt at the sentence that starts at this code point is the next to be judged, from 1."""
        return len(self.attempts.get(start, ())) + 1

    def set_state(self, index: int, state: SentenceState) -> None:
        """Records what is known of a sentence."""
        self.states.extend([None] * (index + 1 - len(self.states)))
        self.states[index] = state
