"""One thing in a true sentence changed so that its source no longer says it: kinds of contrast, by general rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from benchmarks.verdicts_words import (
    AMOUNTS,
    CERTAINTY,
    COMPARED,
    DIRECTIONS,
    EVENTS,
    MONTHS,
    NATIONS,
    ORDINALS,
    UNITS,
    WORDS_OF_NUMBER,
)
from ewe.text.english import FUNCTION_WORDS

_NAME = re.compile(r"\b[A-Z][\w'’-]+(?:\s+(?:(?:of|the|de|von|van|al)\s+)?[A-Z][\w'’-]+)*")
_YEAR = re.compile(r"\b(1[0-9]\d\d|20[0-2]\d)\b(?!s)")
_DIGITS = re.compile(r"(?<![\w.,$£€-])\d{1,3}(?:,\d{3})*(?:\.\d+)?(?![\w-]|[.,]\d)")
_VERB = r"(was|were|is|are|has|had|can|could|will|would|may|did|does)"
_CLAUSE = re.compile(rf"\b{_VERB}\b(?!\s+(?:not|no|never|nothing|nobody|neither)\b)")


@dataclass(frozen=True, slots=True)
class Source:
    """What may be borrowed for a change: names and years of the same article, those of the sentence not left out."""

    names: Sequence[str] = field(default=())
    years: Sequence[str] = field(default=())


def names_in(sentence: str) -> list[str]:
    """Capitalized names that do not open the sentence, or open it and are no common word."""
    found = []
    for match in _NAME.finditer(sentence):
        text = match[0]
        opening = match.start() == 0
        if opening and (" " not in text or text.split()[0].lower() in FUNCTION_WORDS):
            continue
        if text not in MONTHS and text not in NATIONS and len(text) > 2:
            found.append(text)
    return found


def source_of(sentences: Sequence[str]) -> Source:
    """The names and years of an article."""
    names = dict.fromkeys(name for sentence in sentences for name in names_in(sentence))
    years = dict.fromkeys(year for sentence in sentences for year in _YEAR.findall(sentence))
    return Source(tuple(names), tuple(years))


Change = Callable[[str, Source, Random], str | None]


def _year(sentence: str, source: Source, random: Random) -> str | None:
    """Another year, made up."""
    return _swapped(sentence, _YEAR, lambda m: str(int(m[0]) + random.choice((-30, -11, -7, -3, 2, 4, 9, 20))), random)


def _borrowed_year(sentence: str, source: Source, random: Random) -> str | None:
    """The year of something else in the article."""
    others = [year for year in source.years if year not in sentence]
    return _swapped(sentence, _YEAR, lambda m: random.choice(others), random) if others else None


def _number(sentence: str, source: Source, random: Random) -> str | None:
    """Another number, in digits or as a word; no year."""
    words = re.compile(rf"\b(?:{'|'.join(WORDS_OF_NUMBER)})\b")
    if words.search(sentence) and not _numerals(sentence):
        return _swapped(sentence, words, lambda m: _other(WORDS_OF_NUMBER, m[0], random), random)
    found = _numerals(sentence)
    if not found:
        return None
    match = random.choice(found)
    return _put(sentence, match, _another_number(match[0], random))


def _numerals(sentence: str) -> list[re.Match[str]]:
    """Numbers in digits that are no years, no days of a month and stand in no brackets of a citation."""
    month = "|".join(MONTHS)
    dated = re.compile(rf"\d+\s+(?:{month})|(?:{month})\s+\d+")
    spans = [match.span() for match in dated.finditer(sentence)]
    return [
        match
        for match in _DIGITS.finditer(sentence)
        if not _YEAR.fullmatch(match[0]) and not any(a <= match.start() < b for a, b in spans)
    ]


def _another_number(text: str, random: Random) -> str:
    """A number of the same form, clearly another one."""
    digits = [at for at, character in enumerate(text) if character.isdigit()]
    at = digits[0] if len(digits) < 3 else random.choice(digits[:2])
    other = random.choice([d for d in "123456789" if d != text[at]])
    return text[:at] + other + text[at + 1 :]


def _date(sentence: str, source: Source, random: Random) -> str | None:
    """Another month, or another day of the month."""
    month = "|".join(MONTHS)
    day = re.compile(rf"\b\d{{1,2}}(?=\s+(?:{month})\b)|(?<=\s)\d{{1,2}}(?=,\s+\d{{4}})")
    if day.search(sentence) and random.random() < 0.5:
        return _swapped(sentence, day, lambda m: str((int(m[0]) + random.randint(3, 20)) % 27 + 1), random)
    dated = re.compile(rf"\b(?:{month})\b(?=\s+\d)|(?<=\d )(?:{month})\b|(?<=in )(?:{month})\b")
    return _swapped(sentence, dated, lambda m: _other(MONTHS, m[0], random), random)


def _ordinal(sentence: str, source: Source, random: Random) -> str | None:
    """Another ordinal: "10th" or "third"."""
    figures = re.compile(r"\b\d{1,2}(?=(?:st|nd|rd|th)\b)")
    if figures.search(sentence):
        changed = _swapped(sentence, figures, lambda m: str((int(m[0]) + random.choice((2, 3, 5))) % 21 + 4), random)
        return changed and re.sub(r"\b(\d{1,2})(?:st|nd|rd|th)\b", _with_ending, changed)
    words = re.compile(rf"\b(?:{'|'.join(ORDINALS)})\b(?! of all)")
    return _swapped(sentence, words, lambda m: _other(ORDINALS, m[0], random), random)


def _with_ending(match: re.Match[str]) -> str:
    number = int(match[1])
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def _name(sentence: str, source: Source, random: Random) -> str | None:
    """A name of the sentence replaced by one of the article with as many words."""
    own = names_in(sentence)
    if not own:
        return None
    chosen = random.choice(own)
    others = [n for n in source.names if n not in sentence and len(n.split()) == len(chosen.split())]
    others = [n for n in others if not set(n.split()) & set(sentence.split())]
    return sentence.replace(chosen, random.choice(others)) if others else None


def _nation(sentence: str, source: Source, random: Random) -> str | None:
    """Another nation or language."""
    pattern = re.compile(rf"\b(?:{'|'.join(NATIONS)})\b")
    return _swapped(sentence, pattern, lambda m: _other(NATIONS, m[0], random, sentence), random)


def _subject(sentence: str, source: Source, random: Random) -> str | None:
    """Another subject: the name that opens the sentence replaced by one of the article."""
    match = re.match(rf"(?:The\s+)?({_NAME.pattern})(?=\s+(?:was|were|is|are|had|has|\w+ed)\b)", sentence)
    if match is None or match[1].split()[0].lower() in FUNCTION_WORDS:
        return None
    others = [n for n in source.names if not set(n.split()) & set(sentence.split())]
    return random.choice(others) + sentence[match.end() :] if others else None


def _roles(sentence: str, source: Source, random: Random) -> str | None:
    """Two names of the sentence change places, where more than "and" or a comma stands between them."""
    own = list(dict.fromkeys(names_in(sentence)))
    for left, right in pairwise(own):
        a, b = sentence.find(left), sentence.find(right)
        between = sentence[a + len(left) : b]
        once = sentence.count(left) == 1 and sentence.count(right) == 1
        if once and a < b and len(between) < 60 and re.search(r"\b\w+ed\b|\bby\b|\bfrom\b|\bto\b|\bthan\b", between):
            return sentence[:a] + right + between + left + sentence[b + len(right) :]
    return None


def _negation(sentence: str, source: Source, random: Random) -> str | None:
    """The first verb negated."""
    match = _CLAUSE.search(sentence)
    return sentence[: match.end()] + " not" + sentence[match.end() :] if match else None


def _negation_dropped(sentence: str, source: Source, random: Random) -> str | None:
    """A "not" or "never" left out."""
    match = re.search(rf"\b{_VERB}\s+(?:not|never)\b(?! only)", sentence)
    return sentence[: match.end(1)] + sentence[match.end() :] if match else None


def _list(sentence: str, source: Source, random: Random) -> str | None:
    """One more item in a list of three or more."""
    match = re.search(r"(\w[\w'’ -]*), ((?:[\w'’-]+ ?){1,4}),? and (?=\w)", sentence)
    others = [n for n in source.names if not set(n.split()) & set(sentence.split())]
    if match is None or not others:
        return None
    return sentence[: match.end(1)] + f", {random.choice(others)}" + sentence[match.end(1) :]


def _only(sentence: str, source: Source, random: Random) -> str | None:
    """What holds among others said to be the only one."""
    match = re.search(r"\b(?:including|such as|especially|among others)\b", sentence)
    return sentence[: match.start()] + "namely only" + sentence[match.end() :] if match else None


def _table(table: Mapping[str, str]) -> Change:
    """A change of one word by a table, the upper case of its first letter kept."""
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, table))})\b", re.IGNORECASE)

    def change(sentence: str, source: Source, random: Random) -> str | None:
        def other(match: re.Match[str]) -> str:
            found = table[match[0].lower()]
            return found.capitalize() if match[0][0].isupper() else found

        return _swapped(sentence, pattern, other, random)

    return change


CHANGES: dict[str, Change] = {
    "year": _year,
    "year of another": _borrowed_year,
    "number": _number,
    "date": _date,
    "ordinal": _ordinal,
    "name": _name,
    "nation": _nation,
    "subject": _subject,
    "roles": _roles,
    "negation": _negation,
    "negation dropped": _negation_dropped,
    "list": _list,
    "only": _only,
    "some and all": _table(AMOUNTS),
    "units": _table(UNITS),
    "events": _table(EVENTS),
    "comparatives": _table(COMPARED),
    "directions": _table(DIRECTIONS),
    "certainty": _table(CERTAINTY),
}
"""Kind of contrast -> its rule, which returns None where it finds nothing to change."""

GROUPS = {
    "numbers": ("year", "number", "date", "ordinal"),
    "names": ("name", "nation"),
    "negations": ("negation", "negation dropped"),
}
"""The kinds of the table's second row."""


def changed(kind: str, sentence: str, source: Source, random: Random) -> str | None:
    """The sentence with one change of this kind, or None; never the sentence itself."""
    result = CHANGES[kind](sentence, source, random)
    return result if result is not None and result != sentence else None


def _swapped(
    sentence: str, pattern: re.Pattern[str], other: Callable[[re.Match[str]], str], random: Random
) -> str | None:
    """One occurrence of the pattern replaced."""
    found = list(pattern.finditer(sentence))
    if not found:
        return None
    match = random.choice(found)
    return _put(sentence, match, other(match))


def _put(sentence: str, match: re.Match[str], text: str) -> str:
    return sentence[: match.start()] + text + sentence[match.end() :]


def _other(words: Sequence[str], word: str, random: Random, apart: str = "") -> str:
    return random.choice([other for other in words if other != word and other not in apart])
