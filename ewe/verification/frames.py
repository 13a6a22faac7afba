"""Sentences as frames: a relation, its subject and the values that go with it.

There is no parser behind it: word order, prepositions and commas decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ewe.verification.values import Name, Value


class Role(StrEnum):
    """How a value is tied to its relation, by the preposition before it or its place."""

    SUBJECT = "subject"
    OBJECT = "object"
    AGENT = "by"
    RECIPIENT = "to"
    COMPANION = "with"
    CAPACITY = "as"
    OF = "of"
    TOPIC = "for"
    PLACE = "in"
    SITE = "at"
    SOURCE = "from"
    START = "since"
    END = "until"
    MODIFIER = "modifier"
    OTHER = "other"


_ROLES = {
    Role.PLACE: "in within inside",
    Role.SITE: "at on during",
    Role.SOURCE: "from",
    Role.START: "since between",
    Role.END: "until till",
    Role.AGENT: "by",
    Role.RECIPIENT: "to into onto",
    Role.COMPANION: "with alongside under against",
    Role.CAPACITY: "as",
    Role.OF: "of",
    Role.TOPIC: "for about",
}
ROLE_OF_PREPOSITION = {preposition: role for role, words in _ROLES.items() for preposition in words.split()}


@dataclass(frozen=True, slots=True)
class Argument:
    """A value in its role; text is its wording in the sentence (empty for one that is only understood)."""

    value: Value
    role: Role
    text: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One statement: what kind of relation, whose, with which values.

    relations: names of relations, "be" for a bare copula, or "~stem" for a verb outside the word lists. subject: who
    does it, in the active voice; head: the grammatical subject. stems: stems of all content words. start and end: code
    points of the sentence. restricted: said in a way that a comparison of values cannot follow ("only").
    """

    relations: frozenset[str]
    subject: Name | None
    arguments: tuple[Argument, ...]
    head: Name | None = None
    stems: frozenset[str] = frozenset()
    start: int = 0
    end: int = 0
    negated: bool = False
    restricted: bool = False

    def names(self) -> tuple[Name, ...]:
        """All names of the frame, the subject first."""
        own = [argument.value for argument in self.arguments if isinstance(argument.value, Name)]
        return tuple([self.subject, *own] if self.subject is not None else own)
