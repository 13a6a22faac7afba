"""A text as words with its numbers: what stands beside each, its unit, its preposition and what it is for each of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ewe.text.english import AUXILIARIES, DETERMINERS, PREPOSITIONS, PRONOUNS, normal_form, words_of

_TOKEN = re.compile(
    r"(?:(?P<currency>[€$£¥]|\b(?:EUR|USD|GBP|CHF|NOK|SEK|DKK|JPY|CNY|INR|AUD|CAD|PLN|CZK)\b)\s?"
    r"|(?P<sign>(?<![\w)])[-−–]|\bminus ))?"
    r"(?P<number>\d+(?:[.,:]\d+)*(?: (?:hundred|thousand|million|billion|trillion)\b)?)"
    r"|(?P<word>per cent\b|[^\W\d_]+(?:['’][^\W\d_]+)*|[€$£¥%])"
)
_BREAK = re.compile(r"[,;:.!?()–—]")
_SIGNS = {
    "€": "euro",
    "$": "dollar",
    "£": "pound",
    "gbp": "pound",
    "¥": "yen",
    "jpy": "yen",
    "%": "percent",
    "per cent": "percent",
}
LINKS = AUXILIARIES | frozenset(map(normal_form, PRONOUNS | PREPOSITIONS | DETERMINERS | words_of("and or but nor")))
_PREPOSITIONS = frozenset(map(normal_form, PREPOSITIONS))
UNKNOWN = "?"
# Which preposition a number stands behind, by what it says of it; of the others each says something of its own.
_PLACES = {
    normal_form(word): place
    for place, same in {
        "at": "in at on of with during as upon",
        "to": "to into onto toward towards",
        "from": "from between",
        "until": "until till",
        UNKNOWN: "and or but nor",
    }.items()
    for word in same.split()
}
_PASSED_OVER = frozenset(
    map(normal_form, DETERMINERS | words_of("about around circa near nearly almost roughly only up"))
)
_CACHED_TEXTS = 8192


@dataclass(frozen=True, slots=True)
class Number:
    """A number, where it stands among the words, and its unit: the next word unless it is a link, else ""."""

    at: int
    value: str
    unit: str


@dataclass(frozen=True, slots=True)
class NumberedText:
    """words: normal forms, numbers among them, with a currency behind its sum. breaks: places of words behind a mark
    of punctuation.
    """

    words: tuple[str, ...]
    numbers: tuple[Number, ...]
    breaks: frozenset[int]

    def counted(self, number: Number) -> tuple[str, ...]:
        """The words right behind a number, up to a link or a mark of punctuation: "new trees" of "forty new trees"."""
        end = number.at + 1
        while end < len(self.words) and end not in self.breaks and self.words[end] not in LINKS:
            end += 1
        return self.words[number.at + 1 : end]

    def left(self, number: Number) -> str:
        """The nearest word before a number that is no link, or ""."""
        return next((word for word in reversed(self.words[: number.at]) if word not in LINKS), "")

    def described(self, number: Number) -> tuple[str, str]:
        """The nearest word before a number that is no link, and the word right before it unless that is a link."""
        at = next((at for at in range(number.at - 1, -1, -1) if self.words[at] not in LINKS), -1)
        before = self.words[at - 1] if at > 0 else ""
        return (self.words[at] if at >= 0 else "", "" if before in LINKS else before)

    def rate(self, number: Number) -> str:
        """What a number is for each of ("per user"), or ""."""
        behind = self.words[number.at + 1 + bool(number.unit) :]
        return behind[1] if behind[:1] == ("per",) and len(behind) > 1 else ""

    def place(self, number: Number) -> str:
        """The preposition that a number stands behind, "" without one, or that it cannot be told."""
        before = next((word for word in reversed(self.words[: number.at]) if word not in _PASSED_OVER), "")
        if before in _PLACES or is_number(before):
            return _PLACES.get(before, UNKNOWN)
        return before if before in _PREPOSITIONS else ""

    def right(self, number: Number) -> str:
        """The nearest word behind a number and its unit that is no link, or ""."""
        return next((word for word in self.words[number.at + 1 + bool(number.unit) :] if word not in LINKS), "")


@lru_cache(maxsize=_CACHED_TEXTS)
def read_numbers(text: str) -> NumberedText:
    """The words and numbers of a text; read once where it comes again."""
    pairs = list(_words(text))
    words = tuple(word for word, _ in pairs)
    places = [at for at, word in enumerate(words) if is_number(word)]
    following = (words[at + 1] if at + 1 < len(words) else "" for at in places)
    units = ("" if word in LINKS or is_number(word) else word for word in following)
    numbers = tuple(Number(at, words[at], unit) for at, unit in zip(places, units, strict=True))
    return NumberedText(words, numbers, frozenset(at for at, (_, is_apart) in enumerate(pairs) if is_apart))


def is_number(word: str) -> bool:
    """Whether a word of a text is a number."""
    return word.lstrip("-")[:1].isdigit()


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Normal forms, and whether a mark of punctuation stands before; a scale is part of its number ("4.1 million"), and
    "one" is none ("one of the towers").
    """
    end = 0
    for match in _TOKEN.finditer(text):
        is_apart = _BREAK.search(text, end, match.start()) is not None
        end = match.end()
        if match["number"]:
            yield ("-" if match["sign"] else "") + normal_form(match["number"]), is_apart
        if low := (match["word"] or match["currency"] or "").lower():
            low = _SIGNS.get(low, low.replace("’", "'").removesuffix("'s"))
            yield low if low == "one" else normal_form(low), is_apart and not match["number"]
