"""What a factuality evaluation finds, in the records that its files hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from ewe.evaluation.veriscore import ClaimCounts, count_claims, is_refusal
from ewe.types import Claim, Verdict

Key = tuple[str, str]
"""System, prompt."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one system wrote to one prompt; error: why it could not. wall_s: seconds since the answer before it.

    was_alone: whether nothing else was written beside it, so that its time says nothing of the system's speed.
    """

    system: str
    prompt: str
    text: str
    finish_reason: str
    error: str
    wall_s: float
    stats: dict[str, float]
    was_alone: bool = False


@dataclass(frozen=True, slots=True)
class Grade:
    """The claims of one answer as [text, verdict]; unread: sentences that could not be; error: why there are none.

    off_subject: the supported claims that no passage of the article asked about supports; None: the prompt names none.
    repeated: how many of the sentences say again what was said before.
    """

    system: str
    prompt: str
    claims: Sequence[Sequence[str]] = ()
    unread: int = 0
    error: str = ""
    off_subject: Sequence[str] | None = None
    sentences: int = 0
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class Preference:
    """How one answer compares with the baseline's: per order of showing them 1 (better), 0.5 (as good) or 0."""

    system: str
    prompt: str
    against: str
    scores: Sequence[float] = ()
    error: str = ""


Record = Answer | Grade | Preference
RECORDS: tuple[type[Record], ...] = (Answer, Grade, Preference)


@dataclass(slots=True)
class Found:
    """The records of a run by system and prompt; of several for the same the last one counts."""

    answers: dict[Key, Answer] = field(default_factory=dict)
    grades: dict[Key, Grade] = field(default_factory=dict)
    preferences: dict[Key, Preference] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """All of them, in order."""
        all_of = cls()
        for record in records:
            all_of.add(record)
        return all_of

    def add(self, record: Record) -> None:
        """Takes in one record."""
        key = record.system, record.prompt
        if isinstance(record, Answer):
            self.answers[key] = record
        elif isinstance(record, Grade):
            self.grades[key] = record
        else:
            self.preferences[key] = record

    @property
    def num_finished(self) -> int:
        """How many records no further run will make again."""
        graded = sum(not grade.error for grade in self.grades.values())
        return len(self.answers) + graded + sum(not item.error for item in self.preferences.values())

    def lacks_grade(self, key: Key) -> bool:
        """Whether an answer is still to be graded, or again because the judge failed at it."""
        grade = self.grades.get(key)
        return not self.answers[key].error and (grade is None or bool(grade.error))

    def lacks_preference(self, key: Key, baseline: str) -> bool:
        """Whether an answer is still to be compared with the baseline's, or again because the judge failed at it."""
        preference = self.preferences.get(key)
        return key[0] != baseline and (preference is None or bool(preference.error) or preference.against != baseline)

    def counts(self, key: Key) -> ClaimCounts | None:
        """The claims of an answer as VeriScore counts them; none for one that failed, None for one without a grade.

        What is true of another subject than was asked for is stated, and not supported.
        """
        answer, grade = self.answers[key], self.grades.get(key)
        if answer.error:
            return ClaimCounts(0, 0)
        if grade is None or grade.error:
            return None
        beside = grade.off_subject or ()
        judged = (
            (text, Verdict.INCONCLUSIVE if text in beside else Verdict(verdict)) for text, verdict in grade.claims
        )
        claims = (Claim(text, verdict=verdict) for text, verdict in judged)
        return count_claims(claims, refused=is_refusal(answer.text))
