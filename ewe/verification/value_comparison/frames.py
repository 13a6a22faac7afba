"""Sentences as frames: a relation, its subject and the values that go with it, each in its role.

There is no parser behind it: word order, prepositions and commas decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ewe.text.english import EVALUATIONS, FUNCTION_WORDS
from ewe.verification.value_comparison.lexicon import KIND_OF_NOUN, is_trade
from ewe.verification.value_comparison.parts_of_speech import Item, ItemKind
from ewe.verification.value_comparison.values import Moment, Name, Term, Value


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


_ROLE_OF_TIME = {Role.SOURCE: Role.START, Role.RECIPIENT: Role.END}
_MAX_NOUNS = 4  # A longer run of lower-case words is no noun phrase that could be compared.


def bind_values(items: Sequence[Item], role: Role = Role.OBJECT, in_complement: bool = False) -> list[Argument]:
    """The values among `items` in order, each in its role, and the terms.

    role: the role of a value before any preposition. in_complement: the items say what something is. A value without
    a preposition of its own takes the role of the one before it ("in Ulm and Bern"). Terms are the last words of
    noun phrases that say what something is, or that follow a preposition or a relation word without an article.
    """
    binder = _Binder(role, in_complement)
    for item in items:
        binder.take(item)
    binder.end_of_phrase()
    return binder.found


class _Binder:
    def __init__(self, role: Role, complement: bool) -> None:
        self.found: list[Argument] = []
        self._role = role
        self._preposition: Role | None = None
        self._complement = complement
        self._bare = False
        self._after_copula = complement
        self._phrase: list[Item] = []

    def take(self, item: Item) -> None:
        """Account for the next item."""
        if item.kind is ItemKind.WORD and item.norm not in FUNCTION_WORDS:
            self._phrase.append(item)
            return
        if item.value is not None:
            if not (item.owner and not item.explicit):  # "her novel": whose it is says the subject
                self._value(item)
            return
        if item.kind is ItemKind.TIME:  # "a wonderful time", "in later years"
            self._phrase.clear()
        # "in the town of Ulm" is in Ulm, "at the end of the war" is not at the war.
        passes_on = bool(self._phrase) and self._phrase[-1].norm in KIND_OF_NOUN
        self.end_of_phrase()
        if item.kind is ItemKind.PREPOSITION:
            if not (item.norm == "of" and self._preposition is not None and passes_on):
                self._preposition = ROLE_OF_PREPOSITION.get(item.norm, Role.OTHER)
            self._complement = self._after_copula = item.norm == "as"
            self._bare = True
        elif item.kind is ItemKind.TIME:
            self._preposition = None
        elif item.kind is ItemKind.COPULA:
            self._role, self._preposition = Role.OBJECT, None
            self._complement = self._bare = False
            self._after_copula = True
        elif item.kind is ItemKind.DETERMINER:
            self._complement |= self._after_copula and item.norm in ("a", "an", "the")
            self._bare = False
        elif item.kind is ItemKind.RELATION:
            self._role, self._preposition = Role.OBJECT, None
            # "took part in", "made a name": what follows such verbs without an article is no description.
            self._complement, self._bare = False, not all(name.startswith("~") for name in item.relations)
            self._after_copula = False

    def _value(self, item: Item) -> None:
        """A value ends the phrase before it, unless it only describes the noun that follows."""
        assert item.value is not None
        if item.modifier:
            self.found.append(Argument(item.value, Role.MODIFIER, item.norm))
            return
        # "the novel Emma", "the town of Ulm": the noun names the kind of the value and is no term of its own.
        self._phrase.clear()
        self._role = self._preposition or self._role
        if isinstance(item.value, Moment):  # "from 1901 to 1910"
            self._role = _ROLE_OF_TIME.get(self._role, self._role)
        self.found.append(Argument(item.value, self._role, item.norm if item.explicit else ""))
        self._preposition = None
        self._complement = self._bare = self._after_copula = False

    def end_of_phrase(self) -> None:
        """Turn the noun phrase read so far into a term, if it is one that can be compared."""
        if self._phrase and len(self._phrase) <= _MAX_NOUNS and (self._complement or self._bare):
            role = Role.CAPACITY if self._complement else self._preposition or Role.OBJECT
            # "A private university": what the adjectives say is claimed too.
            for word in self._phrase if self._complement else self._phrase[-1:]:
                trade = word is self._phrase[-1] and is_trade(word.norm)
                if word.norm not in EVALUATIONS:
                    self.found.append(Argument(Term(word.stem, trade), role, word.norm))
        self._phrase.clear()
