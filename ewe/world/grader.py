"""Exact grading of answers: what facts a text states, and which of them are true in the world."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ewe.world.people import Fact, Person, relation_of
from ewe.world.wording import Phrasing, catalogue
from ewe.world.world import World, WorldPrompt

_WORD = r"[A-Z][a-z]+"
_NAMES = rf"{_WORD}(?: {_WORD})*"
_PRONOUNS = {"S": "[Hh]e|[Ss]he|[Tt]hey", "O": "him|her|them", "P": "[Hh]is|[Hh]er|[Tt]heir"}
_GRAMMAR = {"was": "was|were", "he": "he|she|they", "his": "his|her|their"}
LEAD_INS = ("In comparison, ", "By contrast, ")
"""What may stand before the second sentence of a comparison."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, slots=True)
class SentenceGrade:
    """One sentence with the facts it states; nothing was understood if there are none."""

    text: str
    true: tuple[Fact, ...]
    false: tuple[Fact, ...]

    @property
    def parsed(self) -> bool:
        """Whether the sentence was understood."""
        return bool(self.true or self.false)


@dataclass(frozen=True, slots=True)
class Grade:
    """What an answer states, each fact once; asked: the facts that the prompt asks for, all of them true."""

    sentences: tuple[SentenceGrade, ...]
    asked: frozenset[Fact]

    @property
    def true(self) -> frozenset[Fact]:
        """The true facts stated."""
        return frozenset(fact for sentence in self.sentences for fact in sentence.true)

    @property
    def false(self) -> frozenset[Fact]:
        """The false facts stated."""
        return frozenset(fact for sentence in self.sentences for fact in sentence.false)

    @property
    def unparsed(self) -> tuple[str, ...]:
        """The sentences that were not understood."""
        return tuple(sentence.text for sentence in self.sentences if not sentence.parsed)

    @property
    def coverage(self) -> float:
        """Share in [0, 1] of the facts asked for that the answer states."""
        return len(self.true & self.asked) / len(self.asked)


def grade(world: World, prompt: WorldPrompt, text: str) -> Grade:
    """Reads an answer and compares what it states with the world.

    A pronoun stands for the person named last (the prompt's first subject at the start), a surname for that person
    or a subject of the prompt. What is said of a person whom the world does not know is false.
    """
    current = prompt.subjects[0]
    sentences = []
    for sentence in filter(None, _SENTENCE_END.split(text.strip())):
        facts, current = read_sentence(sentence, prompt.subjects, current)
        true = tuple(fact for fact in facts if fact in world.facts)
        sentences.append(SentenceGrade(sentence, true, tuple(fact for fact in facts if fact not in world.facts)))
    return Grade(tuple(sentences), frozenset(prompt.facts))


def read_sentence(sentence: str, subjects: Sequence[str] = (), current: str = "") -> tuple[tuple[Fact, ...], str]:
    """The facts that one sentence states, true or not, and whom it speaks of; none and `current` if not understood.

    subjects, current: full names that a surname or pronoun may stand for, and the one that a pronoun stands for now.
    """
    for lead_in in LEAD_INS:
        sentence = sentence.removeprefix(lead_in)
    for phrasing, pattern in _patterns():
        if match := pattern.fullmatch(sentence):
            subject = _resolve(match["person"], subjects, current)
            person = Person(subject, {slot: match[slot] for slot in phrasing.slots})
            return tuple(person.fact(slot) for slot in phrasing.slots), subject
    return (), current


def _resolve(reference: str, subjects: Sequence[str], current: str) -> str:
    """The full name that a name, surname or pronoun stands for; a name nobody bears comes back as it is."""
    if any(re.fullmatch(pattern, reference) for pattern in _PRONOUNS.values()):
        return current
    named = [subject for subject in (current, *subjects) if reference in (subject, subject.rsplit(" ", 1)[-1])]
    return named[0] if named else reference


@cache
def _patterns() -> tuple[tuple[Phrasing, re.Pattern[str]], ...]:
    """Every phrasing with the pattern that reads it back, the ones with most slots first."""
    ordered = sorted(catalogue(), key=lambda phrasing: -len(phrasing.slots))
    return tuple((phrasing, re.compile(_pattern(phrasing))) for phrasing in ordered)


def _pattern(phrasing: Phrasing) -> str:
    pattern = ""
    for literal, place in phrasing.parts:
        pattern += re.escape(literal)
        if place in _PRONOUNS:
            name = rf"{_NAMES}(?='s)" if place == "P" else _NAMES
            pattern += f"(?P<person>{_PRONOUNS[place]}|{name})" + ("(?:'s)?" if place == "P" else "")
        elif place in _GRAMMAR:
            pattern += f"(?:{_GRAMMAR[place]})"
        elif place:
            pattern += f"(?P<{place}>{_value_pattern(place)})"
    return pattern


def _value_pattern(slot: str) -> str:
    if slot.endswith("_year"):
        return r"\d+"
    return "[a-z]+" if relation_of(slot) == "occupation" else _NAMES
