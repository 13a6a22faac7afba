"""Values that statements give: clock times, days, dates, amounts, numbers to reach somebody by, and names."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ewe.longterm.change.change_clauses import Clause
from ewe.longterm.change.change_words import FILLERS, UNITS
from ewe.text.english import MONTHS, NUMBER_WORDS, ORDINALS, WEEKDAYS, words_of

_NUMBER = r"(?:\d+(?:[.,]\d+)*|" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + ")"
_MONTH = "|".join(name for name in MONTHS if len(name) > 2)
_ORDINAL = "|".join(ORDINALS)
_DATE = re.compile(
    rf"\b(?P<day>\d{{1,2}}|{_ORDINAL})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})\b"
    rf"|\b(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b"
)
_CLOCK = re.compile(
    rf"(?:\b(?:at|to|until|till|from|by|before|it is)\s+|^)(?P<half>half past |quarter past |quarter to |around |"
    rf"about )?"
    rf"(?P<hour>{_NUMBER})(?P<minutes>[:.]\d\d)?\s?(?P<half_day>am|pm|o'clock)?(?![\w%]|[ -](?:{'|'.join(UNITS)})\b)"
    r"|\b(?P<plain>\d{1,2}:\d\d)\b|\b(?P<twelve>\d{1,2})\s?(?P<side>am|pm)\b"
)
_DAY = re.compile(r"\b(" + "|".join(WEEKDAYS) + r")s?\b")
_AMOUNT = re.compile(
    rf"(?P<sign>[€$£])?\b(?P<number>{_NUMBER})\s?(?P<unit>{'|'.join(sorted(UNITS, key=len, reverse=True))})\b"
    rf"(?P<each> a (?:day|week|month|year))?|(?P<sign2>[€$£])\s?(?P<number2>{_NUMBER})"
)
_GRADE = re.compile(
    rf"\b(?P<ordinal>{_ORDINAL}|\d+(?:st|nd|rd|th)?)[ -](?P<of>grade|year|semester|term|class|floor|edition|form|"
    rf"volume|chapter)\b"
    rf"|\b(?P<of2>year|grade|class|form|size|volume|chapter|room|extension|level|page) (?P<number>{_NUMBER})\b"
)
_COUNT = re.compile(
    rf"\b(?P<number>{_NUMBER}) of us\b|\b(?:a|our|my|the|her|his) (?P<ordinal>third|fourth|fifth|sixth) (?P<unit>cat|"
    rf"dog|child|baby|kid)\b"
    rf"|\bteam of (?P<team>{_NUMBER})\b"
)
_COLOUR = re.compile(
    r"\b(?:light |dark )?(red|blue|green|yellow|black|white|grey|gray|pink|purple|orange|brown|blonde?|beige|"
    r"turquoise)\b"
)
_PART = re.compile(
    r"\b(?:in the|for the|every|at|before|after) (morning|afternoon|evening|night|lunch|breakfast|dinner|work|bed|"
    r"noon|midday|midnight)s?\b"
)
_PLACE = re.compile(
    r"\b(?:at|in) (?:the |room |our |my )?(?!(?:the|my|our|a|an)\b)([a-z][\w'-]+(?: street| road| square| hall)?)"
)
_CODE = re.compile(r"(?<![@.\w])([a-z]+\d+\w*|\d+[a-z]+\d*)(?![@\w])")
_REACH = re.compile(r"(?<![\w.:])(\+?\d[\d /-]{4,}\d)(?![\w:])|\b([\w.]+@[\w.]+\w)\b")
_PLAIN = re.compile(r"(?<![\w:.@/-])(\d+(?:[.,:]\d+)*)(?![\w:@/%-])")


@dataclass(frozen=True, slots=True)
class Value:
    """kind: what sort of value, as "clock" or "kg"; of two of one kind only one holds. text: which one."""

    kind: str
    text: str


@lru_cache(maxsize=1 << 14)
def values_of(clause: Clause) -> tuple[Value, ...]:
    """The values in a clause; a longer reading takes its digits from the shorter ones."""
    text, found = clause.low, list[Value]()
    for read in _READERS:
        for begin, end, value in list(read(text)):
            found.append(value)
            text = text[:begin] + " " * (end - begin) + text[end:]
    names = " ".join(sorted(clause.names - _DAYS_AND_MONTHS - clause.owners - {clause.speaker}))
    return (*found, *([Value("name", names)] if names else []))


_DAYS_AND_MONTHS = WEEKDAYS | MONTHS.keys() | {f"{day}s" for day in WEEKDAYS} | FILLERS
_Found = Iterator[tuple[int, int, Value]]


def _counts(text: str) -> _Found:
    for one in _COUNT.finditer(text):
        kind = UNITS.get(
            one["unit"] or "people", {"baby": "child", "kid": "child"}.get(one["unit"] or "", one["unit"] or "")
        )
        yield *one.span(), Value(kind, _as_number(one["number"] or one["ordinal"] or one["team"]))


def _spelt(kind: str, pattern: re.Pattern[str]) -> Callable[[str], _Found]:
    """Reads what a pattern finds as values of a kind."""

    def read(text: str) -> _Found:
        for one in pattern.finditer(text):
            if one[1] not in _NO_PLACES:
                yield *one.span(), Value(kind, one[1].removesuffix("'s"))

    return read


def _reached(text: str) -> _Found:
    for one in _REACH.finditer(text):
        digits = re.sub(r"\D", "", one[1] or "")
        if one[2] or len(digits) >= 6:
            yield *one.span(), Value("mail" if one[2] else "reach", one[2] or digits)


def _dates(text: str) -> _Found:
    for one in _DATE.finditer(text):
        day, month = one["day"] or one["day2"], one["month"] or one["month2"]
        yield *one.span(), Value("date", f"{MONTHS[month]}-{_as_number(day)}")


def _graded(text: str) -> _Found:
    for one in _GRADE.finditer(text):
        yield *one.span(), Value(f"which {one['of'] or one['of2']}", _as_number(one["ordinal"] or one["number"]))


def _amounts(text: str) -> _Found:
    for one in _AMOUNT.finditer(text):
        unit = UNITS[one["unit"]] if one["unit"] else "money"
        yield *one.span(), Value(unit, _as_number(one["number"] or one["number2"]))


def _clocks(text: str) -> _Found:
    for one in _CLOCK.finditer(text):
        shown = one["plain"] or (one["twelve"] or one["hour"]) + (one["minutes"] or "")
        yield *one.span(), Value("clock", f"{(one['half'] or '').strip()} {_as_number(shown)}".strip())


def _days(text: str) -> _Found:
    for one in _DAY.finditer(text):
        yield *one.span(), Value("weekday", one[1])


def _plain_numbers(text: str) -> _Found:
    for one in _PLAIN.finditer(text):
        yield *one.span(), Value("number", _as_number(one[1]))


_NO_PLACES = (
    FILLERS
    | words_of("least fact time may general person love touch charge work bed school town charge advance")
    | UNITS.keys()
)
_READERS = (
    *(_reached, _dates, _graded, _counts, _amounts, _clocks, _days, _spelt("part", _PART), _spelt("colour", _COLOUR)),
    *(_spelt("code", _CODE), _plain_numbers, _spelt("place", _PLACE)),
)


def _as_number(text: str) -> str:
    """ "three", "third" and "3rd" are 3; "9:00" is 9."""
    text = re.sub(r"(?:st|nd|rd|th)$", "", text) if text[0].isdigit() else text
    known = NUMBER_WORDS.get(text, ORDINALS.get(text))
    return str(known) if known is not None else re.sub(r"[:.]00$", "", text.replace(",", ""))
