"""Words of the evidence that a claim must not leave out: "fourth largest", "deputy mayor", "few of the soldiers".

Most words can go and what is left stays true: "the old mill burned" bears out "the mill burned". These cannot: without
them the sentence says more than its evidence. Counted without a model, by the word that such a word restricts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ewe.text.english import (
    DETERMINERS,
    FUNCTION_WORDS,
    MONTHS,
    NUMBER_WORDS,
    ORDINALS,
    PRONOUNS,
    normal_form,
    words_of,
)
from ewe.verification.sentence_words import SentenceWords, read_words

_CLAUSE_END = re.compile(r"[;:()–—]|,\s")
_MAY = re.compile(r"\bmay\b")  # not the month
_BE = words_of("is are was were be been")
_DETERMINERS = DETERMINERS | words_of("the a an")
_NEXT = words_of(
    """vice deputy assistant acting former formerly ex alleged allegedly suspected supposed supposedly purported
    purportedly reputed reportedly proclaimed fake false mock proposed planned prospective honorary associate interim
    pseudo quasi semi co attempted cancelled canceled aborted unfinished unbuilt
    unofficial unofficially nearly almost hardly barely scarcely rarely seldom partly partially half temporarily
    might could stopped stops ceased quit considered considers avoided avoids denied denies few some most"""
)
"""What restricts the next word."""

_REST = words_of(
    """initially originally formerly allegedly reportedly supposedly purportedly probably possibly perhaps likely
    unlikely if whether accused suspected dreams dreamed dreamt pretended imagine imagined"""
)
"""What restricts all that follows in its part of the sentence."""
_COPIES = words_of(
    """copy replica imitation parody part parts portion half edge outskirts suburb suburbs lack absence threat risk
    danger possibility chance attempt plan proposal idea fear rumour rumor suspicion verge brink"""
)
"""What is not the thing that "of" names behind it."""

_MORE = words_of("more over above least exceeding minimum")
_LESS = words_of("less fewer under below most up maximum nearly almost")
_TIMES = tuple(map(words_of, ("until till", "before", "after", "since", "by")))
_BEFORE_NUMBERS = words_of("than to at a an least most of")
_COUNTED = {*NUMBER_WORDS, *MONTHS}
_PARTS = words_of("few some most half many several part parts majority minority none percent third quarter thirds")
_OWNERS = DETERMINERS | PRONOUNS | words_of("its his her their all")
_SUPERLATIVES = words_of("most least best worst")
_FRAMES = frozenset(
    map(
        normal_form,
        words_of(
            """myth rumour rumor rumours rumors legend hoax misconception allegation allegations claimed claims claim
            believed believe believes thought assumed assumption speculated speculation argued argues suggested suggests
            proposed recommended demanded urged denied denies doubted disputed hoped feared predicted pretended alleged
            rumoured rumored theory hypothesis belief fear hope evidence told dreams dreamed imagines proof"""
        ),
    )
)
"""What is said to be so with "that" behind it need not be so."""

_UNREAL = (("if",), ("unless",), ("were",), ("had",), ("should",))
_RECORDS = words_of(
    "census data figures report reports survey statistics records officials study analysis estimate law"
)
"""What may be left out behind "according to"."""


@dataclass(frozen=True, slots=True)
class _Restricted:
    """A word of the evidence (its stem), the one after it, and the words of which the claim must have one."""

    stem: str
    following: str
    needed: frozenset[str]


def leaves_out_a_restriction(claim: str, sentence: str) -> bool:
    """Whether the claim says a word that the sentence of evidence restricts, without what restricts it.

    A word that stands elsewhere in the sentence, too, counts only if the same word follows: "the third longest river in
    Asia and the longest in China".
    """
    claimed, own = read_words(claim), read_words(sentence)
    said, pairs = {*claimed.low, *claimed.stems}, set(_pairs(claimed))
    missing = [one for one in _restricted(sentence) if one.needed.isdisjoint(said) and one.stem in said]
    counts, total = Counter(one.stem for one in missing), Counter(own.stems)
    return any(
        counts[one.stem] >= total[one.stem] or (one.following and (one.stem, one.following) in pairs) for one in missing
    )


def _restricted(sentence: str) -> Iterator[_Restricted]:
    """All restricted words; what restricts a word stands in its clause."""
    has_may = _MAY.search(sentence) is not None
    whole = read_words(sentence)
    if whole.low[:1] in _UNREAL or (whole.low[:2] == ("according", "to") and _RECORDS.isdisjoint(whole.low[2:8])):
        yield from _following(whole, 0, len(whole.low), {whole.low[0]})
    for clause in _CLAUSE_END.split(sentence):
        text = read_words(clause)
        for at, low in enumerate(text.low):
            yield from _restricted_at(text, at, low, has_may)


def _restricted_at(text: SentenceWords, at: int, low: str, has_may: bool) -> Iterator[_Restricted]:
    behind = text.low[at + 1 : at + 4]
    is_planned = low in _BE and behind[:1] == ("to",) and _DETERMINERS.isdisjoint(behind[1:2])
    is_undone = (low == "may" and has_may) or (low == "would" and behind[:1] == ("have",))
    is_called = low == "called" and at > 0 and text.low[at - 1] == "so"
    is_few = low == "few" and at > 0 and text.low[at - 1] == "a"
    if (low in _NEXT and not is_few) or is_planned or is_undone or is_called:
        yield from _following(text, at, 1, {"to"} if is_planned else {low})
    for limits in (_MORE, _LESS, *_TIMES):
        if low in limits:
            yield from _number_after(text, at, limits)
    is_part = low in _PARTS or low in NUMBER_WORDS or low.isdigit()
    if is_part and behind[:1] == ("of",) and len(behind) > 1 and behind[1] in _OWNERS:
        yield from _following(text, at + 1, 2, {low})
    is_rank = (low in ORDINALS and low != "first") or low in ("th", "nd", "rd", "among")
    if is_rank and any(map(_is_superlative, behind[: 2 if low == "among" else 1])):
        yield from _following(text, at, 1, {low, *ORDINALS, "one"})
    if text.stems[at] in _FRAMES and "that" in text.low[at + 1 : at + 5]:
        yield from _following(text, text.low.index("that", at), len(text.low), {low, text.stems[at]})
    if low in _REST or (low == "too" and "to" in behind):
        yield from _following(text, at, len(text.low), {low})
    if low in _COPIES and behind[:1] == ("of",):
        yield from _following(text, at + 1, 2, {low})


def _following(text: SentenceWords, at: int, most: int, needed: set[str]) -> Iterator[_Restricted]:
    """The next content words."""
    content = [place for place in range(at + 1, len(text.low)) if text.low[place] not in FUNCTION_WORDS]
    for number, place in enumerate(content[:most]):
        following = text.stems[content[number + 1]] if number + 1 < len(content) else ""
        yield _Restricted(text.stems[place], following, frozenset(needed))


def _number_after(text: SentenceWords, at: int, needed: frozenset[str]) -> Iterator[_Restricted]:
    """The number that a limit stands before."""
    place = at + 1
    while place < len(text.low) and text.low[place] in _BEFORE_NUMBERS:
        place += 1
    if place < len(text.low) and (text.low[place][0].isdigit() or text.low[place] in _COUNTED):
        yield _Restricted(text.stems[place], "", needed)


def _is_superlative(low: str) -> bool:
    return low in _SUPERLATIVES or (low.endswith("est") and len(low) > 5)


def _pairs(text: SentenceWords) -> Iterator[tuple[str, str]]:
    """Content words with the next one."""
    content = [stem for stem, low in zip(text.stems, text.low, strict=True) if low not in FUNCTION_WORDS]
    return zip(content, [*content[1:], ""], strict=True)
