"""Sentences from phrasings: filling a phrasing with one person's names and values."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Literal

from ewe.evaluation.world.names import Gender
from ewe.evaluation.world.people import Fact, Person, second_item
from ewe.evaluation.world.phrasings import LISTS, TOPICS

Reference = Literal["full", "surname", "pronoun"]
Use = Literal["passage", "answer"]

_GRAMMAR = frozenset(("S", "O", "P", "was", "he", "his"))
_PRONOUNS: dict[Gender, dict[str, str]] = {
    "she": {"S": "she", "O": "her", "P": "her", "was": "was", "he": "she", "his": "her"},
    "he": {"S": "he", "O": "him", "P": "his", "was": "was", "he": "he", "his": "his"},
    "they": {"S": "they", "O": "them", "P": "their", "was": "were", "he": "they", "his": "their"},
}


@dataclass(frozen=True, slots=True)
class ValueSpan:
    """Where a sentence states a value: code points [start, end) of the sentence, and the fact it belongs to."""

    start: int
    end: int
    fact: Fact


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence with the facts that it states, in the order of their values."""

    text: str
    spans: tuple[ValueSpan, ...]
    slots: tuple[str, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts stated."""
        return tuple(span.fact for span in self.spans)


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One way to say something about a person; `parts` are (literal, place) pairs."""

    topic: str
    uses: str
    text: str
    parts: tuple[tuple[str, str], ...]

    @property
    def slots(self) -> tuple[str, ...]:
        """The slots of the person that it states, in order."""
        return tuple(place for _, place in self.parts if place and place not in _GRAMMAR)

    def fill(self, person: Person, reference: Reference = "full", other_item: bool = False) -> Wording:
        """The sentence about `person`; `other_item` speaks of the second work or prize where it would of the first."""
        words = _reference_words(person, reference)
        text, spans, slots = "", [], []
        for literal, place in self.parts:
            text += literal
            if place in words:
                word = words[place]
                text += word if text else word[:1].upper() + word[1:]
            elif place:
                slot = second_item(place) if other_item else place
                value = person.values[slot]
                spans.append(ValueSpan(len(text), len(text) + len(value), person.fact(slot)))
                slots.append(slot)
                text += value
        return Wording(text, tuple(spans), tuple(slots))


def _reference_words(person: Person, reference: Reference) -> dict[str, str]:
    pronouns = _PRONOUNS[person.gender]
    if reference == "pronoun":
        return pronouns
    name = person.name if reference == "full" else person.surname
    return {**pronouns, "S": name, "O": name, "P": name + "'s", "was": "was"}


def _parse(topic: str, uses: str, text: str) -> Phrasing:
    parts = tuple((literal, place or "") for literal, place, _, _ in Formatter().parse(text))
    return Phrasing(topic, uses, text, parts)


@cache
def catalogue() -> tuple[Phrasing, ...]:
    """Every phrasing there is, lists included."""
    sources: Iterable[tuple[str, tuple[tuple[str, str], ...]]] = (*TOPICS.items(), *LISTS.items())
    return tuple(_parse(topic, uses, text) for topic, entries in sources for uses, text in entries)


@cache
def phrasings(topic: str, use: Use, named: bool = True) -> tuple[Phrasing, ...]:
    """The phrasings of one topic ("work2" is "work") for passages or answers; named: also those that need a name."""
    return tuple(
        phrasing
        for phrasing in catalogue()
        if phrasing.topic == topic.replace("2", "")
        and ("p" in phrasing.uses if use == "passage" else "a" in phrasing.uses or (named and "A" in phrasing.uses))
        and not any("2" in slot for slot in phrasing.slots)
    )
