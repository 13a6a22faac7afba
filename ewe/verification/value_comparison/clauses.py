"""What a sentence is cut into: clauses, each with its relations, its subject and its values."""

from dataclasses import dataclass, field

from ewe.verification.value_comparison.tokens import Token
from ewe.verification.value_comparison.values import Moment, Name, Value

MODIFIER = "modifier"
"""In the place of a preposition: the value only describes the noun after it."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A value and the preposition before it, or one like it: "" for none, "as" for what something is said to be."""

    value: Value
    preposition: str = ""


@dataclass(slots=True)
class Clause:
    """A stretch of a sentence that speaks of one thing.

    opener: the mark, relative word or "and" before it; opening: its first word. relations: names of relations, "be" for
    a bare copula, or "~stem" for a verb outside the word lists. start and end: code points of the sentence. restricted:
    said in a way that a comparison of values cannot follow ("only"). last_name: the name met last. of_noun: the noun of
    "the author of Emma".
    """

    opener: str = ""
    relations: set[str] = field(default_factory=set)
    subject: Name | None = None
    arguments: list[Argument] = field(default_factory=list)
    start: int = -1
    end: int = 0
    negated: bool = False
    restricted: bool = False
    opening: Token | None = None
    last_name: Name | None = None
    of_noun: str = ""

    def names(self) -> list[Name]:
        """All names, the subject first."""
        return [argument.value for argument in self.values() if isinstance(argument.value, Name)]

    def values(self) -> list[Argument]:
        """All values, the subject first."""
        return self.arguments if self.subject is None else [Argument(self.subject), *self.arguments]

    @property
    def is_dated(self) -> bool:
        """Whether a date is among the values."""
        return any(isinstance(argument.value, Moment) for argument in self.arguments)

    @property
    def is_gapped(self) -> bool:
        """Whether a name and a date stand without a relation of their own ("and to Anna Holm in 1935")."""
        return bool(self.names()) and self.is_dated and not self.relations
