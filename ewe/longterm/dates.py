"""Dates that a question names, and how well the time of a memory fits them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_NAME = "january|february|march|april|may|june|july|august|september|october|november|december"
_MONTHS = _NAME.split("|")
# "may" and "march" are words too: a month stands behind a preposition or a day, or before a number.
_MONTH = re.compile(
    r"\b(?:in|on|of|during|by|since|until|around|before|after|early|late|mid|last|\d{1,2}(?:st|nd|rd|th)?)"
    rf"[\s-]+({_NAME})\b|\b({_NAME})\b(?=,?\s+\d)"
)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_DAY = re.compile(r"(?<![\d:.])\b(\d{1,2})(?:st|nd|rd|th)?\b(?![:.]\d)")
_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_DAYS_LATER = 3  # what happened on a day is told on it or soon after


@dataclass(frozen=True, slots=True)
class AskedDate:
    """The months (1 to 12), years and days that a question names."""

    months: frozenset[int]
    years: frozenset[int]
    days: frozenset[int]

    def fit(self, at: float) -> float:
        """How well a time (seconds since 1970) fits: 1; 0.5 where the day is another one; 0 in other months."""
        try:
            day = datetime.fromtimestamp(at, UTC)
        except (ValueError, OverflowError, OSError):
            return 0.0
        if day.month not in self.months or (self.years and day.year not in self.years):
            return 0.0
        near = not self.days or any(0 <= day.day - asked <= _DAYS_LATER for asked in self.days)
        return 1.0 if near else 0.5


def asked_date(query: str) -> AskedDate | None:
    """What a question names; None without a month."""
    folded = query.lower()
    iso = [tuple(map(int, found)) for found in _ISO.findall(folded)]
    months = {_MONTHS.index(one or other) + 1 for one, other in _MONTH.findall(folded)} | {month for _, month, _ in iso}
    if not months:
        return None
    years = {int(year) for year in _YEAR.findall(folded)}
    days = {int(day) for day in _DAY.findall(_ISO.sub(" ", folded)) if 1 <= int(day) <= 31} | {day for *_, day in iso}
    return AskedDate(frozenset(months), frozenset(years), frozenset(days))
