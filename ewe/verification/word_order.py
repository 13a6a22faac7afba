"""Whether a claim has the words of its evidence in the order in which they say the same."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import pairwise

from ewe.text.english import FUNCTION_WORDS, PREPOSITIONS, PRONOUNS, words_of
from ewe.verification.sentence_words import SentenceWords, read_words

_BE = words_of("is are was were be been being")
_ENDS = PREPOSITIONS | PRONOUNS | words_of("that which")
_IN_ORDER = 0.75


def says_in_another_order(claim: str, evidence: str, title: str = "") -> bool:
    """Whether a claim has the content words of the evidence in an order that may say another thing; title: its title.

    It has if fewer than three in four come in the order of the evidence: "It is 19 km south of Guatemala City" has all
    words of "It is 303 km north of Guatemala City, and 19 km south of Uaxactun", and none of what they say. Nor may a
    word have another place than in the evidence, unless its preposition goes with it: "In 1910 Ada met Bo" says the
    same as "Ada met Bo in 1910", and "Bo met Ada in 1910" does not. A name of the title may stand anywhere: it is
    often a pronoun's. "The race was won by Ada" is read as "Ada won the race".
    """
    claimed, own, titled = read_words(claim), read_words(evidence), set(read_words(title).stems)
    claimed, own = _in_active(claimed, own), _in_active(own, claimed)
    content, others = _content(claimed, titled), _content(own, titled)
    in_order = _longest_common(claimed, content, own, others)
    if len(in_order) < _IN_ORDER * len(content):
        return True
    moved = [at for before, at in pairwise([-1, *content]) if at not in in_order and (before in in_order or before < 0)]
    return not all(_keeps_its_preposition(claimed, at, own) for at in moved)


def _in_active(text: SentenceWords, other: SentenceWords) -> SentenceWords:
    """The words of "the race was won by Ada in 1910" in the order "Ada won the race in 1910".

    As they are where that is no passive, or the other text has its agent behind "by" as well, or not at all.
    """
    agent = text.low.index("by") if "by" in text.low else 0
    verb = max((at for at in range(agent) if text.low[at] in _BE), default=0)
    if not 0 < verb < agent - 1:
        return text
    ends = (at for at in range(agent + 2, len(text.low)) if text.low[at] in _ENDS)
    end = next(ends, len(text.low))
    name = next((text.stems[at] for at in range(agent + 1, end) if text.low[at] not in FUNCTION_WORDS), "")
    prepositions = [_preposition_before(other, at) for at, word in enumerate(other.stems) if word == name]
    if not prepositions or "by" in prepositions:
        return text
    order = [*range(agent + 1, end), *range(verb + 1, agent), *range(verb), *range(end, len(text.low))]
    return replace(text, low=tuple(text.low[at] for at in order), stems=tuple(text.stems[at] for at in order))


def _content(text: SentenceWords, titled: Set[str]) -> list[int]:
    """The places of the words that are neither function words nor of the title."""
    places = range(len(text.low))
    return [at for at in places if text.low[at] not in FUNCTION_WORDS and text.stems[at] not in titled]


def _longest_common(
    claimed: SentenceWords, content: Sequence[int], own: SentenceWords, others: Sequence[int]
) -> set[int]:
    """The places in the claim of the longest common subsequence of both texts' content words."""
    words, other_words = [claimed.stems[at] for at in content], [own.stems[at] for at in others]
    lengths = [[0] * (len(other_words) + 1) for _ in range(len(words) + 1)]
    for row in range(len(words) - 1, -1, -1):
        for column in range(len(other_words) - 1, -1, -1):
            is_same = words[row] == other_words[column]
            below, beside = lengths[row + 1][column], lengths[row][column + 1]
            lengths[row][column] = lengths[row + 1][column + 1] + 1 if is_same else max(below, beside)
    row, column, places = 0, 0, set[int]()
    while row < len(words) and column < len(other_words):
        if words[row] == other_words[column]:
            places.add(content[row])
            row, column = row + 1, column + 1
        elif lengths[row + 1][column] >= lengths[row][column + 1]:
            row += 1
        else:
            column += 1
    return places


def _keeps_its_preposition(claimed: SentenceWords, at: int, own: SentenceWords) -> bool:
    """Whether a word of the claim stands behind a preposition, and behind the same one in the evidence."""
    preposition = _preposition_before(claimed, at)
    places = (place for place, word in enumerate(own.stems) if word == claimed.stems[at])
    return preposition != "" and any(_preposition_before(own, place) == preposition for place in places)


def _preposition_before(text: SentenceWords, at: int) -> str:
    """The preposition before a word, with none but function words between; "" if there is none."""
    while at > 0 and text.low[at - 1] in FUNCTION_WORDS:
        at -= 1
        if text.low[at] in PREPOSITIONS:
            return text.low[at]
    return ""
