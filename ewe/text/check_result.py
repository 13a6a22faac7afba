"""What checking a finished text gives: sentences with verdicts and evidence, and what they add up to."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ewe.types import Claim, Evidence, Passage, Sentence, Verdict, VerificationResult

NO_CLAIM = "no checkable claim"
"""How the reason of a sentence begins that was read and holds nothing to check; any other reason is a failure."""

CODE = f"{NO_CLAIM}: code"
"""The reason of what stands in a fence of code."""

REPEATS, LOOPS = "repeats an earlier sentence", "repeats itself"
"""What a result says of a sentence that has been said before, and of one that goes round in circles."""

REPETITIONS = frozenset({REPEATS, LOOPS})

_DECIDED = frozenset({Verdict.SUPPORTED, Verdict.REFUTED})


def why_no_claim(result: VerificationResult) -> str:
    """The reason of a sentence with this result: empty with claims, else that it has none, and why if that is known."""
    if result.claims:
        return ""
    return f"{NO_CLAIM}: {result.reason}" if result.reason else NO_CLAIM


def is_failure(reason: str) -> bool:
    """Whether a sentence's reason tells of something that went wrong."""
    return bool(reason) and reason != NO_CLAIM and not reason.startswith(f"{NO_CLAIM}: ")


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence with its claims and verdict, the evidence for and against them, and the verifier's notes."""

    sentence: Sentence
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()

    def evidence_of(self, claim: Claim) -> tuple[Evidence, ...]:
        """The evidence for one claim: what names it, or names none and backs its verdict with a passage it lists."""
        return tuple(
            item for item in self.evidence if (item.claim == claim.text if item.claim else _backs(item, claim))
        )

    @property
    def deciding(self) -> Evidence | None:
        """The strongest evidence on the side of the sentence's verdict, if it has any; none against the unsupported."""
        unsupported = {claim.text for claim in self.sentence.claims if claim.reason}
        own = [i for i in self.evidence if i.stance is self.sentence.verdict and i.claim not in unsupported]
        return max(own, key=lambda item: item.score, default=None)

    def is_conflicting(self, claim: Claim) -> bool:
        """Whether some of the claim's evidence supports it and some refutes it, whatever the verdict."""
        return {item.stance for item in self.evidence_of(claim)} >= _DECIDED

    @property
    def conflicts(self) -> tuple[Claim, ...]:
        """The claims on which the evidence disagrees."""
        return tuple(claim for claim in self.sentence.claims if self.is_conflicting(claim))


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text with its sentences in order, by code points of `text`; error: what the verifier failed with, if it did."""

    text: str
    sentences: tuple[CheckedSentence, ...]
    prompt: str = ""
    error: str = ""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all sentences, in order."""
        return tuple(claim for item in self.sentences for claim in item.sentence.claims)

    @property
    def sources(self) -> dict[str, Passage]:
        """Every passage that is evidence, by id."""
        return {item.passage.id: item.passage for checked in self.sentences for item in checked.evidence}

    @property
    def verdict(self) -> Verdict:
        """Refuted if any sentence is; supported if all that hold claims are; not_checked if none holds any."""
        return Verdict.of_all({item.sentence.verdict for item in self.sentences} - {Verdict.NOT_CHECKED})

    @property
    def num_conflicts(self) -> int:
        """How many claims have evidence on both sides."""
        return sum(len(item.conflicts) for item in self.sentences)

    @property
    def num_failed(self) -> int:
        """How many sentences could not be checked, those without claims left out."""
        return sum(is_failure(item.sentence.reason) for item in self.sentences)

    def count_sentences(self) -> dict[Verdict, int]:
        """How many sentences have each verdict; every verdict is a key."""
        return _counted(item.sentence.verdict for item in self.sentences)

    def count_claims(self) -> dict[Verdict, int]:
        """How many claims have each verdict; every verdict is a key."""
        return _counted(claim.verdict for claim in self.claims)


def _backs(item: Evidence, claim: Claim) -> bool:
    return item.passage.id in claim.evidence_ids and item.stance is claim.verdict


def _counted(verdicts: Iterable[Verdict]) -> dict[Verdict, int]:
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in Verdict}
