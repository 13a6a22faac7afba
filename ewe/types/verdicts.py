"""Claims and what checking finds about them."""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from ewe.types.passages import Passage


class Verdict(StrEnum):
    """What checking found about a claim or a sentence. Only `REFUTED` causes a rewrite."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_CHECKED = "not_checked"

    @classmethod
    def of_all(cls, verdicts: Set[Self]) -> Self:
        """Refuted if any is; supported if all are; not_checked without any; else inconclusive."""
        if not verdicts:
            return cls.NOT_CHECKED
        if cls.REFUTED in verdicts:
            return cls.REFUTED
        return cls.SUPPORTED if verdicts == {cls.SUPPORTED} else cls.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that speaks for or against a claim.

    excerpt is the sentence of the passage that decides; score in [0, 1] is the judge's confidence in the stance. claim
    is the text of the claim that it speaks to; where that is empty, it backs the verdict of every claim that lists its
    passage.
    """

    passage: Passage
    stance: Verdict
    score: float
    excerpt: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A checkable statement; start and end are code points of the sentence it was taken from.

    support: how much of the evidence's weight supports it, in [0, 1], whatever the verdict; 0 where nobody weighed it.
    reason: why it is refuted although no passage contradicts it; empty otherwise.
    """

    text: str
    start: int = 0
    end: int = 0
    verdict: Verdict = Verdict.NOT_CHECKED
    score: float = 0.0
    evidence_ids: tuple[str, ...] = ()
    support: float = 0.0
    reason: str = ""


class SentenceClaims(list[Claim]):
    """The claims of one sentence; reason: why there are none ("question"), where it is known."""

    def __init__(self, claims: Iterable[Claim] = (), reason: str = "") -> None:
        super().__init__(claims)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class VerificationRequest:
    """One sentence to check.

    preceding: the text before it (for pronouns); following: the next sentence, empty while it is not written yet.
    closed_world: whether what the datastore does not bear is refuted as unsupported; None: as the verifier was made.
    wants_answers: whether sentences that answer the prompt's question are looked for, if the sentence is not supported.
    """

    prompt: str
    preceding: str
    sentence: str
    following: str = ""
    closed_world: bool | None = None
    wants_answers: bool = False


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """Claims with their verdicts, the evidence behind them, and notes on how they came about.

    reason: why the sentence holds no claim ("question"), where it is known. answers: sentences that answer the question
    (`excerpt`), the likeliest first, where they were asked for.
    """

    claims: tuple[Claim, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    answers: tuple[Evidence, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Refuted if any claim is; supported if all claims are; not_checked without claims; else inconclusive."""
        return Verdict.of_all({claim.verdict for claim in self.claims})

    @property
    def score(self) -> float:
        """Share of supported claims in [0, 1]; 0 without claims."""
        supported = sum(claim.verdict is Verdict.SUPPORTED for claim in self.claims)
        return supported / len(self.claims) if self.claims else 0.0
