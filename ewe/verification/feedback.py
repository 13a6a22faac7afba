"""What a check puts into memory: the deciding sentences of passages, or a line that lists the refuted claims."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ewe.config import FeedbackForm
from ewe.types import Evidence, Passage, Verdict, VerificationResult

_INSTRUCTION = "Please refrain from including the following imprecise statements:"
_STANCE_OF_FORM = {"refuting": Verdict.REFUTED, "supporting": Verdict.SUPPORTED}


class PassageFeedback:
    """Builds verification units from evidence and verdicts.

    forms: "refuting" and "supporting" give one unit per such passage, under its title, with the sentences that decide,
    the weightiest first: a unit that cannot hold all of them is cut at a sentence, from the end. "instruction" gives
    the line of appendix D. max_units bounds the passages of one result. Refuted claims come first in rank, because
    their sentences are written again; the best evidence is last, where it stays in memory longest.
    """

    def __init__(self, forms: Sequence[FeedbackForm] = ("refuting", "supporting"), max_units: int = 3) -> None:
        self._stances = {_STANCE_OF_FORM[form] for form in forms if form in _STANCE_OF_FORM}
        self._instruct = "instruction" in forms
        self._max_units = max_units

    def build(self, result: VerificationResult) -> list[Passage]:
        """The units for one result, the most useful last; passages without any verdict give none."""
        chosen = [evidence for evidence in result.evidence if evidence.stance in self._stances]
        ranked = sorted(chosen, key=lambda evidence: (evidence.stance is not Verdict.REFUTED, -evidence.score))
        units = _without_copies(map(_unit, _by_passage(ranked)))[: self._max_units]
        units.reverse()
        instruction = self._instruction(result) if self._instruct else None
        return [instruction, *units] if instruction is not None else units

    def _instruction(self, result: VerificationResult) -> Passage | None:
        """The line that lists the refuted claims; None without any."""
        refuted = dict.fromkeys(claim.text for claim in result.claims if claim.verdict is Verdict.REFUTED)
        if not refuted:
            return None
        listed = " ".join(f"({number}) {text}" for number, text in enumerate(refuted, 1))
        return Passage(f"instruction#{_digest(listed)}", f"{_INSTRUCTION} {listed}")


def _by_passage(ranked: Iterable[Evidence]) -> list[list[Evidence]]:
    """The evidence of one stance in one passage together, in the order of the best of each."""
    groups: dict[tuple[str, Verdict], list[Evidence]] = {}
    for evidence in ranked:
        groups.setdefault((evidence.passage.id, evidence.stance), []).append(evidence)
    return list(groups.values())


def _unit(group: Sequence[Evidence]) -> Passage:
    """The passage cut to its deciding sentences, with an id that depends on the passage and these sentences only."""
    passage = group[0].passage
    text = ""
    for excerpt in (evidence.excerpt.strip() or passage.text.strip() for evidence in group):
        if excerpt not in text:
            text = f"{text} {excerpt}".strip()
    if text == passage.text.strip():
        return passage
    return replace(passage, id=f"{passage.id}#{_digest(text)}", text=text)


def _without_copies(passages: Iterable[Passage]) -> list[Passage]:
    """The first passage of each title and text."""
    return list({(passage.title, passage.text): passage for passage in reversed(list(passages))}.values())[::-1]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()
