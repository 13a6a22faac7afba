"""Words of the evidence that a claim must not leave out: "fourth largest", "deputy mayor", "few of the soldiers".

Most words can go and what is left stays true: "the old mill burned" bears out "the mill burned". These cannot: without
them the sentence says more than its evidence. Counted without a model, by the word that such a word restricts. Of
prepositions before numbers `number_places` judges, of parts of a sentence that are left out `omissions`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from ewe.text.english import DETERMINERS, FUNCTION_WORDS, MONTHS, NUMBER_WORDS, ORDINALS, PREPOSITIONS
from ewe.verification.limiting_words import (
    BE,
    BEFORE_A_WORD,
    BEFORE_NUMBERS,
    BEFORE_THE_REST,
    BOUNDS,
    COPIES,
    FRAMES,
    OWNERS,
    RANKS,
    RECORDS,
    SHARES,
    UNREAL,
    is_superlative,
)
from ewe.verification.sentence_words import SentenceWords, read_words

_MAY = re.compile(r"\bmay\b")  # not the month


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sentence between marks of punctuation, with the place in the sentence where it begins.

    content: the places in the part of its content words; has_may: whether its "may" is no month.
    """

    start: int
    low: tuple[str, ...]
    stems: tuple[str, ...]
    content: tuple[int, ...]
    has_may: bool

    def behind(self, at: int, most: int | None = None) -> tuple[int, ...]:
        """The places of the next content words, of all without `most`."""
        begin = bisect_right(self.content, at)
        return self.content[begin : None if most is None else begin + most]


@dataclass(frozen=True, slots=True)
class _Limit:
    """The places of words of a part that are restricted, and the words of which the claim must have one."""

    places: Sequence[int]
    needed: frozenset[str]


def leaves_out_a_restriction(claim: str, sentence: str) -> bool:
    """Whether the claim says a word that the sentence of evidence restricts, without what restricts it.

    A word that stands elsewhere in the sentence, too, counts only if the same word follows: "the third longest river in
    Asia and the longest in China".
    """
    claimed, own = read_words(claim), read_words(sentence)
    said = {*claimed.low, *claimed.stems}
    missing: dict[int, str] = {}  # places in the sentence, with the stem of the next content word
    for part in _parts(own, _MAY.search(sentence) is not None):
        following = {at: part.stems[behind] for at, behind in pairwise(part.content)}
        for limit in [*_limits(part), *_of_what_is_unreal(own, part)]:
            if limit.needed.isdisjoint(said):
                missing |= {part.start + at: following.get(at, "") for at in limit.places if part.stems[at] in said}
    counts, total, pairs = Counter(own.stems[at] for at in missing), Counter(own.stems), set(_pairs(claimed))
    return any(
        counts[own.stems[at]] >= total[own.stems[at]] or (behind and (own.stems[at], behind) in pairs)
        for at, behind in missing.items()
    )


def _parts(own: SentenceWords, has_may: bool) -> Iterator[_Part]:
    for start, end in pairwise([0, *sorted(own.breaks - {0}), len(own.low)]):
        low = own.low[start:end]
        content = tuple(at for at, word in enumerate(low) if word not in FUNCTION_WORDS)
        yield _Part(start, low, own.stems[start:end], content, has_may)


def _pairs(text: SentenceWords) -> Iterator[tuple[str, str]]:
    """Content words with the next one."""
    content = [stem for stem, low in zip(text.stems, text.low, strict=True) if low not in FUNCTION_WORDS]
    return zip_longest(content, content[1:], fillvalue="")


def _of_what_is_unreal(own: SentenceWords, part: _Part) -> Iterator[_Limit]:
    """All content words of "Had it been built, it would be the longest" and "According to legend, Alban built it"."""
    is_legend = own.low[:2] == ("according", "to") and RECORDS.isdisjoint(own.low[2:8])
    if is_legend or not UNREAL.isdisjoint(own.low[:1]):
        yield _Limit(part.content, frozenset(own.low[:1]))


def _limits(part: _Part) -> Iterator[_Limit]:
    """What the words of a part restrict."""
    doubts: dict[frozenset[str], int] = {}
    for at, low in enumerate(part.low):
        for rule in _RULES:
            if (limit := rule(part, at)) is not None:
                yield limit
        if (begin := _doubted_from(part, at)) is not None:
            doubts.setdefault(frozenset({low, part.stems[at]}), begin)
    for needed, begin in doubts.items():
        yield _Limit(part.behind(begin), needed)


def _doubted_from(part: _Part, at: int) -> int | None:
    """Behind which place a word takes the truth from all: "it is a myth that", "probably", "too weak to"."""
    low = part.low[at]
    if part.stems[at] in FRAMES and "that" in part.low[at + 1 : at + 5]:
        return part.low.index("that", at)
    return at if low in BEFORE_THE_REST or (low == "too" and "to" in part.low[at + 1 : at + 4]) else None


def _next_word(part: _Part, at: int) -> _Limit | None:
    """ "Deputy mayor", "partly destroyed", "may have", "would have been", "so called"; not "a few"."""
    low, before, behind = part.low[at], part.low[max(0, at - 1) : at], part.low[at + 1 : at + 2]
    is_limit = (
        (low in BEFORE_A_WORD and (low, before) != ("few", ("a",)))
        or (low == "may" and part.has_may)
        or (low == "would" and behind == ("have",))
        or (low == "called" and before == ("so",))
    )
    return _Limit(part.behind(at, 1), frozenset({low})) if is_limit else None


def _plan(part: _Part, at: int) -> _Limit | None:
    """ "Was to become"; not "is to the north"."""
    behind = part.low[at + 1 : at + 3]
    is_plan = part.low[at] in BE and behind[:1] == ("to",) and DETERMINERS.isdisjoint(behind[1:])
    return _Limit(part.behind(at, 1), frozenset({"to"})) if is_plan else None


def _bound(part: _Part, at: int) -> _Limit | None:
    """ "Less than 300", "until March"; of "until 1990" `number_places` judges."""
    if part.low[at] not in BOUNDS:
        return None
    place = next((one for one in range(at + 1, len(part.low)) if part.low[one] not in BEFORE_NUMBERS), at)
    low, bounded = part.low[at], part.low[place]
    is_number = low not in PREPOSITIONS and (bounded[0].isdigit() or bounded in NUMBER_WORDS)
    return _Limit((place,), BOUNDS[low]) if is_number or bounded in MONTHS else None


def _share(part: _Part, at: int) -> _Limit | None:
    """ "Few of the soldiers", "two of its ships"."""
    low, behind = part.low[at], part.low[at + 1 : at + 3]
    is_share = low in SHARES or low in NUMBER_WORDS or low.isdigit()
    is_of = behind[:1] == ("of",) and not OWNERS.isdisjoint(behind[1:])
    return _Limit(part.behind(at + 1, 2), frozenset({low})) if is_share and is_of else None


def _rank(part: _Part, at: int) -> _Limit | None:
    """ "Third longest", "among the largest"."""
    low = part.low[at]
    reach = 2 if low == "among" else 1
    is_rank = (low == "among" or low in RANKS) and any(map(is_superlative, part.low[at + 1 : at + 1 + reach]))
    return _Limit(part.behind(at, 1), frozenset({low, "one", *ORDINALS})) if is_rank else None


def _copy(part: _Part, at: int) -> _Limit | None:
    """ "A replica of the tower", "the outskirts of Oslo"."""
    is_copy = part.low[at] in COPIES and part.low[at + 1 : at + 2] == ("of",)
    return _Limit(part.behind(at + 1, 2), frozenset({part.low[at]})) if is_copy else None


_RULES = (_next_word, _plan, _bound, _share, _rank, _copy)
