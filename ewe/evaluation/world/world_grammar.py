"""The grammar of the encyclopedia: its sentences, read back into the facts that they state."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from ewe.evaluation.world.people import Fact, Person, relation_of
from ewe.evaluation.world.wording import Phrasing, ValueSpan, catalogue

LEAD_INS = ("In comparison, ", "By contrast, ")
"""What may stand before the second sentence of a comparison."""

_WORD = r"[A-Z][a-z]+"
_NAMES = rf"{_WORD}(?: {_WORD})*"
_PRONOUNS = {"S": "[Hh]e|[Ss]he|[Tt]hey", "O": "him|her|them", "P": "[Hh]is|[Hh]er|[Tt]heir"}
_GRAMMAR = {"was": "was|were", "he": "he|she|they", "his": "his|her|their"}
_GAP = re.compile(r"(?<=[.!?])\s+|\Z")
_REMEMBERED = 65536


@dataclass(frozen=True, slots=True)
class Reading:
    """What one sentence states of `subject`, in order, true or not; nothing was understood without spans.

    slots: of each span. Where nothing was understood, subject is whom the text before speaks of.
    """

    subject: str
    spans: tuple[ValueSpan, ...] = ()
    slots: tuple[str, ...] = ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts stated."""
        return tuple(span.fact for span in self.spans)


def sentences_of(text: str) -> list[tuple[int, str]]:
    """The sentences of a text, none blank, each with the code point at which it starts."""
    sentences, start = [], 0
    for gap in _GAP.finditer(text):
        piece = text[start : gap.start()]
        if piece.strip():
            sentences.append((start + len(piece) - len(piece.lstrip()), piece.strip()))
        start = gap.end()
    return sentences


@lru_cache(_REMEMBERED)
def read_sentence(sentence: str, subjects: tuple[str, ...] = (), current: str = "") -> Reading:
    """What a sentence states.

    subjects, current: full names that a surname or pronoun may stand for, and the one that a pronoun stands for now.
    """
    lead_in = next((one for one in LEAD_INS if sentence.startswith(one)), "")
    for phrasing, pattern in patterns():
        if match := pattern.fullmatch(sentence, len(lead_in)):
            subject = _resolve(match["person"], subjects, current)
            person = Person(subject, {slot: match[slot] for slot in phrasing.slots})
            spans = tuple(ValueSpan(*match.span(slot), person.fact(slot)) for slot in phrasing.slots)
            return Reading(subject, spans, phrasing.slots)
    return Reading(current)


def _resolve(reference: str, subjects: Sequence[str], current: str) -> str:
    """The full name that a name, surname or pronoun stands for; a name nobody bears comes back as it is."""
    if any(re.fullmatch(pattern, reference) for pattern in _PRONOUNS.values()):
        return current
    named = [subject for subject in (current, *subjects) if reference in (subject, subject.rsplit(" ", 1)[-1])]
    return named[0] if named else reference


@cache
def patterns() -> tuple[tuple[Phrasing, re.Pattern[str]], ...]:
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
