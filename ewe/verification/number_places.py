"""Whether a claim says its numbers of what the evidence says them of.

A claim can have all words of its evidence, most in the same order, and still be false: "Students pay 45 pounds" on
"45 pounds a year; students pay 20 pounds", "It survives 28 °C" on "It survives -28 °C", "Profit fell by 3 million" on
"Profit fell to 3 million".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from ewe.text.english import normal_form, words_of
from ewe.verification.number_words import LINKS, UNKNOWN, Number, NumberedText, is_number, read_numbers

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
_SAME_PLACES = (
    frozenset({"at", normal_form("within")}),
    frozenset({"", "at"}),
    frozenset({"", "by"}),
    frozenset({"", "for"}),
)
_YEAR = re.compile(r"[12]\d{3}")


def moves_a_number(claim: str, evidence: str) -> bool:
    """Whether a number of the claim has another sign or unit in the evidence, or stands for something else there.

    It does if it stands behind a preposition that says something else of it ("by 3 million" for "to 3 million"), is for
    each of something else ("40 dollars" for "40 dollars per user"), or of another thing ("standard warranty" for
    "extended warranty"), if the words before it in the claim do not all stand before it there, or if another number of
    its kind stands between it and the words, or the number, that the claim has beside it, unless both are of one list
    ("in 1998, 1999 and 2001"). Where there is no other number of its kind, the words may come in any order.
    """
    claimed, own = read_numbers(claim), read_numbers(evidence)
    return not all(_is_in_place(number, claimed, own) for number in claimed.numbers)


def _is_in_place(number: Number, claimed: NumberedText, own: NumberedText) -> bool:
    there = [one for one in own.numbers if _says_the_same(one, number, claimed, own)]
    rivals = [one for one in own.numbers if _is_rival(one, number, claimed, own)]
    if not there or not rivals:
        return bool(there)
    return _is_beside_its_words(number, there, rivals, claimed, own)


def _says_the_same(one: Number, number: Number, claimed: NumberedText, own: NumberedText) -> bool:
    """Whether a number of the evidence has the claim's value, unit, preposition and rate, and is of no other thing."""
    return (
        one.value == number.value
        and _has_unit(one, number)
        and _is_same_place(own.place(one), claimed.place(number))
        and own.rate(one) == claimed.rate(number)
        and not _counts_another(one, number, claimed, own)
        and not _is_of_another(own.described(one), claimed.described(number), own)
    )


def _counts_another(one: Number, number: Number, claimed: NumberedText, own: NumberedText) -> bool:
    """Whether the claim counts with it what the evidence has elsewhere: "40 oaks" for "40 trees, mostly oaks"."""
    counted, claimed_counted = own.counted(one), claimed.counted(number)
    if not counted or not claimed_counted or _YEAR.fullmatch(number.value):
        return False
    return set(counted).isdisjoint(claimed_counted) and number.unit in own.words


def _is_beside_its_words(
    number: Number, there: Sequence[Number], rivals: Sequence[Number], claimed: NumberedText, own: NumberedText
) -> bool:
    """Whether no rival stands between one of the same numbers and the words that the claim has beside it."""
    earlier = max((one.at for one in claimed.numbers if one.at < number.at), default=-1)
    before = {word for word in claimed.words[earlier + 1 : number.at] if word not in LINKS}
    beside = {claimed.left(number), claimed.words[earlier] if earlier >= 0 else ""} - {""}
    right = claimed.right(number)
    for one in there:
        if not before <= set(own.words[: one.at]) or (right and right not in own.words[one.at :]):
            continue
        first = min((_last(word, own.words[: one.at]) for word in beside), default=one.at)
        last = own.words.index(right, one.at) if right else one.at
        between = (rival for rival in rivals if first < rival.at < last)
        if all(_are_listed(rival, one, own) or _leads_to(rival, one, own) for rival in between):
            return True
    return False


def _last(word: str, words: Sequence[str]) -> int:
    """Where a word stands last; behind the words if it is not among them."""
    return max((at for at, one in enumerate(words) if one == word), default=len(words))


def _is_same_place(place: str, other: str) -> bool:
    return UNKNOWN in (place, other) or place == other or {place, other} in _SAME_PLACES


def _is_of_another(described: tuple[str, str], claimed: tuple[str, str], own: NumberedText) -> bool:
    """Whether both are of one word with another before it, and the evidence has the claim's, too: "the standard
    warranty is two years; the extended warranty is five years".
    """
    (word, before), (claimed_word, claimed_before) = described, claimed
    if word != claimed_word or before == claimed_before or not before or not claimed_before:
        return False
    return (claimed_before, word) in pairwise(own.words)


def _has_unit(one: Number, number: Number) -> bool:
    return number.unit == one.unit or _MEASURES.isdisjoint((number.unit, one.unit))


def _is_rival(rival: Number, number: Number, claimed: NumberedText, own: NumberedText) -> bool:
    """Whether another number of the evidence has the unit of the claim's, its place, or is a year or time as well."""
    if rival.value == number.value:
        return False
    are_years = all(_YEAR.fullmatch(one.value) and one.unit not in _MEASURES for one in (rival, number))
    are_times = ":" in rival.value and ":" in number.value
    return are_years or are_times or rival.unit == number.unit != "" or own.left(rival) == claimed.left(number) != ""


def _leads_to(rival: Number, one: Number, own: NumberedText) -> bool:
    """Whether both are of one change: "from 5 to 15", "by 3 percent to 49 percent"."""
    ends = own.place(rival) in ("from", "by") and own.place(one) in ("to", "until")
    return ends and LINKS.issuperset(own.words[rival.at + 1 + bool(rival.unit) : one.at])


def _are_listed(first: Number, second: Number, own: NumberedText) -> bool:
    """Whether only numbers and "and" or "or" stand between two numbers, and no "between" before them."""
    begin, end = sorted((first.at, second.at))
    is_list = all(word in ("and", "or") or is_number(word) for word in own.words[begin:end])
    return is_list and own.words[max(0, begin - 1)] not in ("between", "from")
