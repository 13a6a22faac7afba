"""VeriScore: how much of what long answers claim is supported, and whether they claim enough."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from ewe.types import Claim, Verdict

# "I'm sorry, but I couldn't find", "I cannot provide a biography of": an apology or the writer's inability comes first.
_REFUSAL = re.compile(
    r"\W*(?:(?:I(?:['’]m| am)|we(?:['’]re| are))\s+(?:very |so |truly )?(?:sorry|afraid|unable|not able)\b"
    r"|(?:(?:I|we)\s+)?(?:sincerely )?apologi[sz]e\b|(?:my )?apologies\b|sorry\b"
    r"|(?:unfortunately,? |regrettably,? )?(?:I|we)\s+(?:cannot|can['’]t|can not|could not|couldn['’]t|do not|don['’]t"
    r"|did not|didn['’]t|won['’]t|will not)\s+(?:\w+ly )?"
    r"(?:help|assist|provide|give|write|find|answer|have|know|comply|create|tell)\b"
    r"|as an? (?:AI|language model|assistant)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ClaimCounts:
    """N distinct claims of one response, S of them supported; a refusal states nothing. Raises ValueError."""

    supported: int
    stated: int
    refused: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.supported <= self.stated:
            raise ValueError(f"{self.supported} of {self.stated} claims cannot be supported")
        if self.refused and self.stated:
            raise ValueError(f"a refusal states nothing, got {self.stated} claims")


@dataclass(frozen=True, slots=True)
class ResponseScore:
    """Precision S / N, recall min(S / K, 1) and their harmonic mean F1, each in [0, 1]; all 0 where S is 0."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class VeriScore:
    """Means over all responses, in [0, 1], with what they were made of.

    k: the number of supported claims that makes recall 1. responses: one score each, in order. refusals and
    without_claims (refusals not among them): how many responses got 0 because they state nothing.
    """

    precision: float
    recall: float
    f1: float
    k: float
    responses: tuple[ResponseScore, ...]
    refusals: int
    without_claims: int


def veriscore(responses: Iterable[ClaimCounts | Iterable[Claim]], k: float | None = None) -> VeriScore:
    """VeriScore of several responses, each given by its judged claims or by their counts.

    k: None takes `median_claims` of these responses (Chen et al. 2024: 55, 49, 31 and 43 for LongFact, FAVA, AlpacaFact
    and Biography). Raises ValueError without responses or for a k that is not positive.
    """
    counts = [item if isinstance(item, ClaimCounts) else count_claims(item) for item in responses]
    chosen = median_claims(counts) if k is None else float(k)
    scores = tuple(score_response(item, chosen) for item in counts)
    if not scores:
        raise ValueError("there are no responses to score")
    return VeriScore(
        precision=fmean(score.precision for score in scores),
        recall=fmean(score.recall for score in scores),
        f1=fmean(score.f1 for score in scores),
        k=chosen,
        responses=scores,
        refusals=sum(item.refused for item in counts),
        without_claims=sum(not item.stated and not item.refused for item in counts),
    )


def count_claims(claims: Iterable[Claim], refused: bool = False) -> ClaimCounts:
    """Distinct claims by their exact text, and how many are supported; a refusal's claims are not counted.

    A text that was judged several times is supported only if it was every time.
    """
    if refused:
        return ClaimCounts(0, 0, refused=True)
    supported: dict[str, bool] = {}
    for claim in claims:
        supported[claim.text] = supported.get(claim.text, True) and claim.verdict is Verdict.SUPPORTED
    return ClaimCounts(sum(supported.values()), len(supported))


def median_claims(counts: Iterable[ClaimCounts]) -> float:
    """K: the median number of claims per response, refusals left out; at least 1, also where nothing was answered."""
    stated = [item.stated for item in counts if not item.refused]
    return max(1.0, float(median(stated))) if stated else 1.0


def score_response(counts: ClaimCounts, k: float) -> ResponseScore:
    """The score of one response (VeriScore, eq. 1 to 3), 0 without a supported claim; raises ValueError for k <= 0."""
    if not k > 0:
        raise ValueError(f"K must be positive, got {k}")
    if not counts.supported:
        return ResponseScore(0.0, 0.0, 0.0)
    precision, recall = counts.supported / counts.stated, min(counts.supported / k, 1.0)
    return ResponseScore(precision, recall, 2 * precision * recall / (precision + recall))


def is_refusal(text: str) -> bool:
    """Whether a response (in English) declines to answer: it opens with an apology or says first that it cannot."""
    return _REFUSAL.match(text) is not None
