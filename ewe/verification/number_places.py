"""Whether a claim says its numbers of what the evidence says them of.

A claim can have all words of its evidence, most in the same order, and still be false: "Students pay 45 pounds" on
"45 pounds a year; students pay 20 pounds", "It survives 28 °C" on "It survives -28 °C", "Profit fell by 3 million" on
"Profit fell to 3 million".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ewe.text.english import AUXILIARIES, DETERMINERS, PREPOSITIONS, PRONOUNS, normal_form, words_of

_TOKEN = re.compile(
    r"(?:(?P<currency>[€$£¥]|\b(?:EUR|USD|GBP|CHF|NOK|SEK|DKK|JPY|CNY|INR|AUD|CAD|PLN|CZK)\b)\s?"
    r"|(?P<sign>(?<![\w)])[-−–]|\bminus ))?"
    r"(?P<number>\d+(?:[.,]\d+)*(?: (?:hundred|thousand|million|billion|trillion)\b)?)"
    r"|(?P<word>per cent\b|[^\W\d_]+(?:['’][^\W\d_]+)*|[€$£¥%])"
)
_SIGNS = {"€": "euro", "$": "dollar", "£": "pound", "gbp": "pound", "¥": "yen", "%": "percent", "per cent": "percent"}
_MEASURES = frozenset(
    map(
        normal_form,
        words_of(
            """euro dollar pound yen chf nok sek dkk jpy cny inr aud cad pln czk percent mile kilometre metre foot inch
            yard kilogram gram tonne ton litre acre hectare second minute hour day week month year decade century square
            cubic"""
        ),
    )
)
_LINKS = AUXILIARIES | frozenset(map(normal_form, PRONOUNS | PREPOSITIONS | DETERMINERS | words_of("and or but nor")))
_PREPOSITIONS = frozenset(map(normal_form, PREPOSITIONS))
_UNKNOWN = "?"
# Which preposition a number stands behind, by what it says of it; of the others each says something of its own.
_PLACES = {
    normal_form(word): place
    for place, same in {
        "at": "in at on of with during as upon",
        "to": "to into onto toward towards",
        "from": "from between",
        "until": "until till",
        _UNKNOWN: "and or but nor",
    }.items()
    for word in same.split()
}
_PASSED_OVER = frozenset(
    map(normal_form, DETERMINERS | words_of("about around circa near nearly almost roughly only up"))
)
_SAME_PLACES = (
    frozenset({"at", normal_form("within")}),
    frozenset({"", "at"}),
    frozenset({"", "by"}),
    frozenset({"", "for"}),
)
_YEAR = re.compile(r"[12]\d{3}")
_CACHED_TEXTS = 8192


@dataclass(frozen=True, slots=True)
class _Number:
    """A number, where it stands among the words, and its unit: the next word unless it is a link, else ""."""

    at: int
    value: str
    unit: str


@dataclass(frozen=True, slots=True)
class _Text:
    """words: normal forms, numbers among them, with a currency behind its sum."""

    words: tuple[str, ...]
    numbers: tuple[_Number, ...]

    def left(self, number: _Number) -> str:
        """The nearest word before a number that is no link, or ""."""
        return next((word for word in reversed(self.words[: number.at]) if word not in _LINKS), "")

    def described(self, number: _Number) -> tuple[str, str]:
        """The nearest word before a number that is no link, and the word right before it unless that is a link."""
        at = next((at for at in range(number.at - 1, -1, -1) if self.words[at] not in _LINKS), -1)
        before = self.words[at - 1] if at > 0 else ""
        return (self.words[at] if at >= 0 else "", "" if before in _LINKS else before)

    def rate(self, number: _Number) -> str:
        """What a number is for each of ("per user"), or ""."""
        behind = self.words[number.at + 1 + bool(number.unit) :]
        return behind[1] if behind[:1] == ("per",) and len(behind) > 1 else ""

    def place(self, number: _Number) -> str:
        """The preposition that a number stands behind, "" without one, or that it cannot be told."""
        before = next((word for word in reversed(self.words[: number.at]) if word not in _PASSED_OVER), "")
        if before in _PLACES or _is_number(before):
            return _PLACES.get(before, _UNKNOWN)
        return before if before in _PREPOSITIONS else ""

    def right(self, number: _Number) -> str:
        """The nearest word behind a number and its unit that is no link, or ""."""
        return next((word for word in self.words[number.at + 1 + bool(number.unit) :] if word not in _LINKS), "")


def moves_a_number(claim: str, evidence: str) -> bool:
    """Whether a number of the claim has another sign or unit in the evidence, or stands for something else there.

    It does if it stands behind a preposition that says something else of it ("by 3 million" for "to 3 million"), is for
    each of something else ("40 dollars" for "40 dollars per user"), or of another thing ("standard warranty" for
    "extended warranty"), if the words before it in the claim do not all stand before it there, or if another number of
    its kind stands between it and the words, or the number, that the claim has beside it, unless both are of one list
    ("in 1998, 1999 and 2001"). Where there is no other number of its kind, the words may come in any order.
    """
    claimed, own = _read(claim), _read(evidence)
    return not all(_is_in_place(number, claimed, own) for number in claimed.numbers)


def _is_in_place(number: _Number, claimed: _Text, own: _Text) -> bool:
    place = claimed.place(number)
    there = [
        one
        for one in own.numbers
        if one.value == number.value
        and _has_unit(one, number)
        and _is_same_place(own.place(one), place)
        and own.rate(one) == claimed.rate(number)
        and not _is_of_another(own.described(one), claimed.described(number), own)
    ]
    rivals = [one for one in own.numbers if _is_rival(one, number, claimed, own)]
    if not rivals:
        return bool(there)
    earlier = max((one.at for one in claimed.numbers if one.at < number.at), default=-1)
    before = {word for word in claimed.words[earlier + 1 : number.at] if word not in _LINKS}
    beside = {claimed.left(number), claimed.words[earlier] if earlier >= 0 else ""} - {""}
    right = claimed.right(number)
    for one in there:
        if not before <= set(own.words[: one.at]) or (right and right not in own.words[one.at :]):
            continue
        first = min((_last(word, own.words[: one.at]) for word in beside), default=one.at)
        last = own.words.index(right, one.at) if right else one.at
        if all(_are_listed(rival, one, own) for rival in rivals if first < rival.at < last):
            return True
    return False


def _last(word: str, words: Sequence[str]) -> int:
    """Where a word stands last; behind the words if it is not among them."""
    return max((at for at, one in enumerate(words) if one == word), default=len(words))


def _is_same_place(place: str, other: str) -> bool:
    return _UNKNOWN in (place, other) or place == other or {place, other} in _SAME_PLACES


def _is_of_another(described: tuple[str, str], claimed: tuple[str, str], own: _Text) -> bool:
    """Whether both are of one word with another before it, and the evidence has the claim's, too: "the standard
    warranty is two years; the extended warranty is five years".
    """
    (word, before), (claimed_word, claimed_before) = described, claimed
    if word != claimed_word or before == claimed_before or not before or not claimed_before:
        return False
    return (claimed_before, word) in pairwise(own.words)


def _has_unit(one: _Number, number: _Number) -> bool:
    return number.unit == one.unit or _MEASURES.isdisjoint((number.unit, one.unit))


def _is_rival(rival: _Number, number: _Number, claimed: _Text, own: _Text) -> bool:
    """Whether another number of the evidence has the unit of the claim's, its place, or is a year as well."""
    if rival.value == number.value:
        return False
    are_years = all(_YEAR.fullmatch(one.value) and one.unit not in _MEASURES for one in (rival, number))
    return are_years or rival.unit == number.unit != "" or own.left(rival) == claimed.left(number) != ""


def _are_listed(first: _Number, second: _Number, own: _Text) -> bool:
    """Whether only numbers and "and" or "or" stand between two numbers, and no "between" before them."""
    begin, end = sorted((first.at, second.at))
    is_list = all(word in ("and", "or") or _is_number(word) for word in own.words[begin:end])
    return is_list and own.words[max(0, begin - 1)] not in ("between", "from")


@lru_cache(maxsize=_CACHED_TEXTS)
def _read(text: str) -> _Text:
    words = tuple(_words(text))
    places = [at for at, word in enumerate(words) if _is_number(word)]
    following = (words[at + 1] if at + 1 < len(words) else "" for at in places)
    units = ("" if word in _LINKS or _is_number(word) else word for word in following)
    return _Text(words, tuple(_Number(at, words[at], unit) for at, unit in zip(places, units, strict=True)))


def _is_number(word: str) -> bool:
    return word.lstrip("-")[:1].isdigit()


def _words(text: str) -> Iterator[str]:
    """Normal forms; a scale is part of its number ("4.1 million"), and "one" is none ("one of the towers")."""
    for match in _TOKEN.finditer(text):
        if match["number"]:
            yield ("-" if match["sign"] else "") + normal_form(match["number"])
        if low := (match["word"] or match["currency"] or "").lower():
            low = _SIGNS.get(low, low.replace("’", "'").removesuffix("'s"))
            yield low if low == "one" else normal_form(low)
