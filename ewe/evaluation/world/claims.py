"""What a sentence claims, read by the encyclopedia's own grammar: one claim per thing that it says of a person."""

import re
from dataclasses import dataclass
from functools import cache

from ewe.evaluation.world.names import is_person_name
from ewe.evaluation.world.people import Fact, relation_of, second_item
from ewe.evaluation.world.wording import Phrasing, catalogue
from ewe.evaluation.world.world_grammar import Reading, read_sentence, sentences_of
from ewe.types import Claim, VerificationRequest

_PAIR = re.compile(r"\b(?=([A-Z][a-z]+ [A-Z][a-z]+)\b)")


@dataclass(frozen=True, slots=True)
class FactClaim:
    """A claim in words and the facts that it consists of: a work or prize, say, and its year."""

    claim: Claim
    facts: tuple[Fact, ...]


def claims_of(request: VerificationRequest) -> list[FactClaim]:
    """The claims of `request.sentence`, in order, with spans in its code points; none of what is said of nobody known.

    A pronoun means the person named last, the first one of the prompt at the start, and a surname that person or one of
    the prompt.
    """
    subjects = people_named(request.prompt)
    current = subjects[0] if subjects else ""
    for _, sentence in sentences_of(request.preceding):
        current = read_sentence(sentence, subjects, current).subject
    claims = []
    for start, sentence in sentences_of(request.sentence):
        reading = read_sentence(sentence, subjects, current)
        current = reading.subject
        if current:
            claims += _claims(reading, start)
    return claims


def people_named(text: str) -> tuple[str, ...]:
    """The full names of people in a text, in order."""
    return tuple(dict.fromkeys(filter(is_person_name, _PAIR.findall(text))))


def _claims(reading: Reading, offset: int) -> list[FactClaim]:
    """One claim per item; a year belongs to its work, prize, institute, ...: without it nobody could check it."""
    values = {slot: span.fact.value for slot, span in zip(reading.slots, reading.spans, strict=True)}
    items: dict[str, list[str]] = {}
    for slot in reading.slots:
        item = slot.removesuffix("_year")
        items.setdefault(item if item in values else slot, []).append(slot)
    claims = []
    for slots in items.values():
        spans = [span for slot, span in zip(reading.slots, reading.spans, strict=True) if slot in slots]
        claim = Claim(_say(reading.subject, slots, values), offset + spans[0].start, offset + spans[-1].end)
        claims.append(FactClaim(claim, tuple(span.fact for span in spans)))
    return claims


def _say(subject: str, slots: list[str], values: dict[str, str]) -> str:
    """A sentence with these values of a person and no other."""
    is_second = any("2" in slot for slot in slots)
    text = ""
    for literal, place in _plainest(frozenset(map(relation_of, slots))).parts:
        slot = second_item(place) if is_second else place
        text += literal + (subject if place == "S" else values.get(slot, place))
    return text


@cache
def _plainest(slots: frozenset[str]) -> Phrasing:
    """The shortest phrasing of these slots that begins with the person and has no pronoun in it."""
    return min(
        (one for one in catalogue() if set(one.slots) == slots and one.parts[0] == ("", "S") and _is_plain(one)),
        key=lambda phrasing: len(phrasing.text),
    )


def _is_plain(phrasing: Phrasing) -> bool:
    return {place for _, place in phrasing.parts if place} <= {"S", "was", *phrasing.slots}
