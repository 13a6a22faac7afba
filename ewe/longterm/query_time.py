"""Times that questions and callers name: dates in English, periods, ISO dates."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self

from ewe.errors import InvalidRequestError

Time = float | str | date
"""Seconds since 1970, an ISO date or time ("2024-05-01"), or a date or datetime of Python; UTC without a zone."""

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

_ORDINAL = r"(\d{1,2})(?:st|nd|rd|th)?"
# A date with its year; a bare year stands behind a word of time, or it could be a sum of money.
_DATED = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d\d(?:-\d\d)?)\b|\b(?:{_ORDINAL}\s+(?:of\s+)?)?({_NAME})(?:\s+{_ORDINAL})?,?\s+((?:19|20)\d\d)\b"
    r"|\b(?:in|during|since|before|after|until|till|by|of|from|to|between|and|around|early|late|mid|year|spring|summer"
    r"|autumn|fall|winter)[\s-]+(?P<bare>(?:19|20)\d\d)\b(?!\s*[-/.:]\s*\d)"
)
_BEHIND = re.compile(r"(since|after|before|until|till|by)(?:\s+(?:the\s+)?(?:year|early|late|mid))?\s*$")
_AGO = re.compile(r"\b(\d+|a|an|one|two|three|four|five|six|ten)\s+(day|week|month|year)s?\s+ago\b")
_LAST = re.compile(r"\blast\s+(week|month|year)\b")
_ONCE = re.compile(
    r"\bused?\s+to\b|\b(?:previous(?:ly)?|former(?:ly)?|original(?:ly)?|ex|in\s+the\s+past)\b"
    r"|\b(?:my|our|his|her|their|\w+['’]s?)\s+old\b(?!\s+(?:man|lady|friends?)\b)"  # not "how old"
)
# Behind it "before?", "before Paris?" and "before I moved?" ask for what was before.
_PAST_VERB = re.compile(r"\b(?:did|was|were|had|\w{3,}ed|\w+ught)\b|['’]d\b")
_BEFORE = re.compile(r"\bbefore\b")
# What was so, not what happened: "What car did I have?", but "When did I move?", "What did she say?".
_WAS = re.compile(
    r"^(?!when\b)(?!.*\b(?:happen|move|start|begin|stop|quit|buy|get|say|tell|ask|leave|go|come|join|change|become|meet|"
    r"decide|name|call|win|lose|find|give|send|see|visit|finish|pass|break|sell|born|die)(?:ed|d)?\b)"
    r".*\b(?:did|was|were|had)\b"
)
_YEARS = range(1900, 2101)
_AHEAD = 86400.0  # clocks differ, and a date without a zone may be tomorrow's
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10}
_DAYS = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time, in seconds since 1970, the end not included; None where it is open."""

    begin: float | None
    end: float | None

    @classmethod
    def at(cls, moment: float) -> Self:
        """The shortest one: a single time."""
        return cls(moment, math.nextafter(moment, math.inf))

    @property
    def looks_back(self) -> bool:
        """Whether it is all that was before a time."""
        return self.begin is None

    def holds(self, at: float) -> bool:
        """Whether a time lies in it; none does where an end is open."""
        return self.begin is not None and self.end is not None and self.begin <= at < self.end

    def meets(self, valid_from: float | None, valid_until: float | None) -> bool:
        """Whether something that holds between two times, the end not included, holds for a part of it."""
        begun = valid_from is None or self.end is None or valid_from < self.end
        return begun and (valid_until is None or self.begin is None or self.begin < valid_until)


@dataclass(frozen=True, slots=True)
class QueryDate:
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
        near = not self.days or any(0 <= day.day - date <= _DAYS_LATER for date in self.days)
        return 1.0 if near else 0.5


def query_date(query: str) -> QueryDate | None:
    """What a question names; None without a month."""
    folded = query.lower()
    iso = [tuple(map(int, match)) for match in _ISO.findall(folded)]
    months = {_MONTHS.index(one or other) + 1 for one, other in _MONTH.findall(folded)} | {month for _, month, _ in iso}
    if not months:
        return None
    years = {int(year) for year in _YEAR.findall(folded)}
    days = {int(day) for day in _DAY.findall(_ISO.sub(" ", folded)) if 1 <= int(day) <= 31} | {day for *_, day in iso}
    return QueryDate(frozenset(months), frozenset(years), frozenset(days))


def query_period(query: str, now: float) -> Period | None:
    """The time that an English question asks about; None for a question about now, or about no time in particular.

    Dates need a year ("in 2024", "since May 2024", "before 2024-05-03"), or count back ("last year", "two months ago");
    "used to", "my previous boss", "before" behind a verb in the past, and "did" or "was" in a question for how things
    were ("What car did I have?") ask for all that was before now.
    """
    folded = query.lower()
    matches = [(match, period) for match in _DATED.finditer(folded) if (period := _period_of(match)) is not None]
    if len(matches) > 1:  # between, or from ... to
        begins, ends = ([getattr(period, side) for _, period in matches] for side in ("begin", "end"))
        return Period(min(begins), max(ends))
    if matches:
        match, period = matches[0]
        word = _BEHIND.search(folded[: match.start("bare") if match["bare"] else match.start()])
        return _from(word[1] if word else "", period)
    return _counted_back(folded, now)


def period_of(query: str, as_of: float | None, now: float) -> Period:
    """When what is found must hold: at `as_of`, else at the time that the query asks about, else now."""
    return (query_period(query, now) or Period.at(now)) if as_of is None else Period.at(as_of)


def seconds(name: str, time: Time) -> float:
    """A time in seconds since 1970. Raises InvalidRequestError, calling it `name`, for one that is none."""
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if isinstance(time, date):
        return datetime(time.year, time.month, time.day, tzinfo=UTC).timestamp()
    if isinstance(time, int) and not isinstance(time, bool) and time in _YEARS:
        raise InvalidRequestError(f'{name}: {time} is a number of seconds; of the year say "{time}-01-01"')
    if isinstance(time, int | float) and not isinstance(time, bool) and math.isfinite(time):
        return float(time)
    try:
        return float(time) if _is_number(time) else seconds(name, datetime.fromisoformat(str(time)))
    except ValueError:
        raise InvalidRequestError(f"{name}: a time is an ISO date or seconds since 1970, got {time!r}") from None


def check_told(at: float, now: float) -> None:
    """Refuses a time at which something was said or written down that lies ahead: it would be newer than all else."""
    if at > now + _AHEAD:
        raise InvalidRequestError(
            f"what was said or written down at {at:.15g} (seconds since 1970) lies in the future: give seconds, not "
            "milliseconds, and say valid_from of what begins later"
        )


def _is_number(time: object) -> bool:
    """Whether a text is a number of seconds; "2024" is a year, "20240501" a day."""
    return isinstance(time, str) and re.fullmatch(r"-?(\d{5,7}|\d{9,})(\.\d+)?|-?\d+\.\d+|0", time) is not None


def _period_of(match: re.Match[str]) -> Period | None:
    """The day, month or year of a match of `_DATED`; None for a date that no calendar has."""
    iso, day, month, other_day, year, bare = match.groups()
    try:
        if iso:
            year_of, month_of, *days = map(int, iso.split("-"))
            return _days(date(year_of, month_of, days[0])) if days else _month(year_of, month_of)
        if bare:
            return Period(_start(date(int(bare), 1, 1)), _start(date(int(bare) + 1, 1, 1)))
        number, number_of_day = _MONTHS.index(month) + 1, day or other_day
        return _days(date(int(year), number, int(number_of_day))) if number_of_day else _month(int(year), number)
    except ValueError:
        return None


def _month(year: int, month: int) -> Period:
    return Period(_start(date(year, month, 1)), _start(date(year + month // 12, month % 12 + 1, 1)))


def _days(first: date, count: float = 1.0) -> Period:
    return Period(_start(first), _start(first) + timedelta(days=count).total_seconds())


def _start(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _from(word: str, period: Period) -> Period:
    """The stretch that a preposition makes of a date."""
    stretches: dict[str, Callable[[], Period]] = {
        "since": lambda: Period(period.begin, None),
        "after": lambda: Period(period.end, None),
        "by": lambda: Period(None, period.end),
    }
    if word in ("before", "until", "till"):
        return Period(None, period.begin)
    return stretches[word]() if word in stretches else period


def _counted_back(folded: str, now: float) -> Period | None:
    today = datetime.fromtimestamp(now, UTC).date()
    if re.search(r"\byesterday\b", folded):
        return _days(today - timedelta(days=1))
    if ago := _AGO.search(folded):
        count = _COUNTS.get(ago[1]) or int(ago[1])
        return Period.at(now - count * timedelta(days=_DAYS[ago[2]]).total_seconds())
    if last := _LAST.search(folded):
        if last[1] == "year":
            return Period(_start(date(today.year - 1, 1, 1)), _start(date(today.year, 1, 1)))
        if last[1] == "month":
            ended = today.replace(day=1) - timedelta(days=1)
            return _month(ended.year, ended.month)
        return _days(today - timedelta(days=today.weekday() + 7), 7)
    return Period(None, now) if _asks_for_before(folded) else None


def _asks_for_before(folded: str) -> bool:
    """Whether a question asks for how things were."""
    verb = _PAST_VERB.search(folded)
    is_before = verb is not None and _BEFORE.search(folded, verb.end()) is not None
    return is_before or _ONCE.search(folded) is not None or _WAS.search(folded) is not None
