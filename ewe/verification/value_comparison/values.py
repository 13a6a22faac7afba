"""Values that can be compared: dates, numbers and names, found in a sentence and brought to one form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from ewe.verification.value_comparison.lexicon import KIND_OF_NOUN, MEASURES, NameKind, level


class Agreement(StrEnum):
    """How two values of one type relate."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNCLEAR = "unclear"


class Bound(StrEnum):
    """Words that make a date the limit of when something was: `BY` counts the date itself in, the others do not.

    "since" and "until" are none: they date the beginning or end of a period itself.
    """

    BEFORE = "before"
    BY = "by"
    AFTER = "after"


_MONTH = 31  # Days; all months are taken to be of one length, which keeps the order of dates.
_YEAR = 12 * _MONTH
_NEAR = 10  # Years within which a date agrees with an approximate one.


@dataclass(frozen=True, slots=True)
class Moment:
    """A date as far as it is known; years is the length of the period (10 for a decade, 100 for a century).

    hedged: stated as approximate ("around"). bound: what was dated lies on one side of the date.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    years: int = 1
    hedged: bool = False
    bound: Bound | None = None

    def compare(self, other: Moment) -> Agreement:
        """Equal if every part that both state agrees; unclear if they share no part or one is hedged.

        With a bound: equal if `other` lies within what this states, different if both have no day in common.
        """
        if self.bound or other.bound:
            return self._compare_days(other)
        if self.year is not None and other.year is not None and not self._overlaps(other):
            near = (self.hedged or other.hedged) and abs(self.year - other.year) <= _NEAR
            return Agreement.UNCLEAR if near else Agreement.DIFFERENT
        pairs = [(self.month, other.month), (self.day, other.day)]
        if any(mine is not None and theirs is not None and mine != theirs for mine, theirs in pairs):
            return Agreement.UNCLEAR if self.hedged or other.hedged else Agreement.DIFFERENT
        shared = any(mine is not None and theirs is not None for mine, theirs in [(self.year, other.year), *pairs])
        return Agreement.EQUAL if shared else Agreement.UNCLEAR

    def _overlaps(self, other: Moment) -> bool:
        mine, theirs = self.year or 0, other.year or 0
        return mine < theirs + other.years and theirs < mine + self.years

    def _compare_days(self, other: Moment) -> Agreement:
        if self.year is None or other.year is None:
            return Agreement.EQUAL if self == other else Agreement.UNCLEAR
        (first, end), (others_first, others_end) = self._days(self.year), other._days(other.year)
        if first <= others_first and others_end <= end:
            return Agreement.EQUAL
        return Agreement.DIFFERENT if others_end <= first or end <= others_first else Agreement.UNCLEAR

    def _days(self, year: int) -> tuple[float, float]:
        """The days [first, end) on which it can have been."""
        first = year * _YEAR + ((self.month or 1) - 1) * _MONTH + (self.day or 1) - 1
        end = first + (1 if self.day else _MONTH if self.month else self.years * _YEAR)
        match self.bound:
            case Bound.BEFORE:
                return -math.inf, first
            case Bound.BY:
                return -math.inf, end
            case Bound.AFTER:
                return end, math.inf
        near = _NEAR * _YEAR if self.hedged else 0
        return first - near, end + near


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with stems of the words that say what is counted or measured; hedged as in `Moment`."""

    number: float
    units: frozenset[str] = frozenset()
    ordinal: bool = False
    hedged: bool = False

    def compare(self, other: Quantity) -> Agreement:
        """Unclear unless both count the same thing; hedged numbers agree within a tenth and never differ."""
        measures = [{MEASURES[unit] for unit in units if unit in MEASURES} for units in (self.units, other.units)]
        if all(measures) and measures[0].isdisjoint(measures[1]):
            return Agreement.UNCLEAR
        if self.ordinal != other.ordinal or not (self.units & other.units or self.units == other.units):
            return Agreement.UNCLEAR
        if self.number == other.number:
            return Agreement.EQUAL
        hedged = self.hedged or other.hedged
        near = abs(self.number - other.number) <= 0.1 * max(abs(self.number), abs(other.number))
        if near and not self.ordinal and (hedged or _is_rounding(self.number, other.number)):
            return Agreement.EQUAL
        return Agreement.UNCLEAR if hedged else Agreement.DIFFERENT


def _is_rounding(one: float, other: float) -> bool:
    """Whether one number is the other rounded to two or more significant digits (1.9 million for 1,862,000)."""
    for rough, exact in ((one, other), (other, one)):
        digits = len(f"{rough:.10g}".replace(".", "").strip("0"))
        if abs(rough) >= 1000 and digits >= 2 and float(f"{exact:.{digits}g}") == rough:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Name:
    """A proper name or title as folded words without articles and connectors; text is its wording."""

    words: tuple[str, ...]
    kind: NameKind = NameKind.UNKNOWN
    text: str = field(default="", compare=False)

    def compare(self, other: Name) -> Agreement:
        """Equal if the words of one are all in the other or one abbreviates the other; else different.

        Unclear if the kinds of both are known and differ (an institute is no wrong value for a river), or if one is the
        name of a country or continent and the other is not.
        """
        short, long = sorted((self, other), key=lambda name: len(name.words))
        if set(short.words) <= set(long.words):
            return Agreement.EQUAL if _is_short_form(short, long) else Agreement.UNCLEAR
        if _abbreviates(short, long) or _initials_agree(short.words, long.words):
            return Agreement.EQUAL
        if level(self.words) != level(other.words):  # a town may lie in the country, a county in the state
            return Agreement.UNCLEAR
        known = NameKind.UNKNOWN not in (self.kind, other.kind)
        return Agreement.UNCLEAR if known and self.kind != other.kind else Agreement.DIFFERENT


def _is_short_form(short: Name, long: Name) -> bool:
    """Whether a name whose words are all in `long` can stand for it: "Tarrow" is not "the Tarrow Prize"."""
    heads = [word for word in long.words if word in KIND_OF_NOUN]
    return len(short.words) == len(long.words) or not heads or any(head in short.words for head in heads)


def _abbreviates(short: Name, long: Name) -> bool:
    """Whether `short` is one word made of the initials of `long` ("WHO")."""
    return len(short.words) == 1 and len(long.words) > 1 and short.words[0] == "".join(word[0] for word in long.words)


def _initials_agree(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two personal names share the last word and their other words or initials ("J. Lind", "Jan Lind")."""
    if len(one) < 2 or len(other) < 2 or one[-1] != other[-1]:
        return False
    pairs = list(zip(one[:-1], other[:-1], strict=False))
    return all(a == b or (min(len(a), len(b)) == 1 and a[0] == b[0]) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Term:
    """A common noun that says what something is ("botanist"), as stem; trade: whether it is a trade or profession."""

    stem: str
    trade: bool = field(default=False, compare=False)

    def compare(self, other: Term) -> Agreement:
        """Equal for the same stem; different for two trades; unclear otherwise, as one can be many things."""
        if self.stem == other.stem:
            return Agreement.EQUAL
        return Agreement.DIFFERENT if self.trade and other.trade else Agreement.UNCLEAR


Value = Moment | Quantity | Name | Term


@lru_cache(maxsize=65536)
def compare(one: Value, other: Value) -> Agreement:
    """How two values relate; unclear for values of different types."""
    return one.compare(other) if type(one) is type(other) else Agreement.UNCLEAR  # type: ignore[arg-type]
