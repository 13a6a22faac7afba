"""What a claim leaves out of its evidence, by the place where it was: "[free] for students", "first [woman] to vote".

What happened stays true with less detail: "The bridge was built [in 1911 with money of the state]". What holds in
general, or of the most, the first, all or none of a kind, need not: who, when and where belong to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from ewe.text.english import DETERMINERS, FUNCTION_WORDS, MONTHS, PREPOSITIONS, WEEKDAYS, is_past, words_of
from ewe.verification.sentence_words import SentenceWords, read_words

_ARE, _WERE = words_of("is are"), words_of("was were")
_GENERAL = _ARE | words_of("has have may can must shall will do does")
_PAST = _WERE | words_of(
    """had did ate beat bit bound broke burst cast caught cut dealt drove fed felt fled forgot froze grew hid hit hung
    kept left lent let lost met rode set shed shook shut slept sought spent split spoke spread stole stuck swept swore
    threw tore withdrew wore wound"""
)
_EXCEPTIONS = words_of("except excepting excluding neither")
_OPERATORS = words_of(
    """only all every each any no none never not nobody nothing few fewer less more than most least majority minority
    best worst always"""
)
"""A claim with one of these says something of a kind, whose borders must not go."""
_PARTS = words_of("half third quarter part percent some many several")
_CONDITIONS = words_of("if unless provided per")
_OPENINGS = _CONDITIONS | words_of(
    """for to on with within without under over above below exceeding before after until till during between
    outside inside against when while where that which who whom whose only"""
)
"""What begins a part of a sentence that may tell of whom or when the rest holds."""
_TIMES = WEEKDAYS | MONTHS.keys() | {f"{day}s" for day in WEEKDAYS}
_TIMES |= words_of("winter summer spring autumn weekends weekdays holidays night")
_TURNS = words_of("whose where")  # The sentence goes on with another subject.
_BEYOND = words_of("after behind besides")
_GOVERNORS = words_of("of under by with for to from about than against like")
_PLACES = words_of("city town village island municipality borough state province county hamlet parish name title")
_JOINING = words_of("and or but nor")
_NEGATIONS = words_of("not never no nor neither")
_ADDED = FUNCTION_WORDS - {"us"}  # which may be a country
_LOOK_BACK = 8  # words, for the article of what a part of a sentence belongs to


_Run = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Gap:
    """Words of the evidence that the claim leaves out: own[start:end]; before: the word before them, and its place."""

    start: int
    end: int
    before: str
    place: int


def leaves_out_a_border(claim: str, sentence: str) -> bool:
    """Whether what the claim leaves out of its sentence of evidence may be what makes that true."""
    claimed, own = read_words(claim), read_words(sentence)
    blocks = _blocks(claimed, own)
    if not blocks:
        return False
    if _leaves_out_an_exception(claimed, own) or _takes_its_subject_elsewhere(claimed, own, blocks):
        return True
    is_ranked, is_general = _speaks_of_a_kind(claimed), _is_general(claimed)
    if is_ranked and own.low[0] in _BEYOND and own.low[0] not in claimed.low:
        return True
    may_choose = not _NEGATIONS.isdisjoint(claimed.low)
    gaps = [gap for gap in _gaps(claimed, own, blocks) if _drops(own, gap, claimed)]
    if is_general and _widens_its_subject(claimed, gaps):
        return True
    return any(
        own.low[gap.start] in _CONDITIONS
        or (own.low[gap.start] in _TURNS and gap.end not in own.breaks and gap.end < len(own.low))
        or _is_ranked(own, gap)
        or _is_splice(own, gap)
        or (not may_choose and _is_alternative(own, gap))
        or ((is_ranked or is_general) and _is_border(own, gap, is_ranked))
        for gap in gaps
    )


def takes_as_present(claim: str, sentence: str) -> bool:
    """Whether the claim says that something is what the sentence says it was."""
    claimed, own = set(read_words(claim).low), set(read_words(sentence).low)
    return not _ARE.isdisjoint(claimed) and _ARE.isdisjoint(own) and not _WERE.isdisjoint(own)


def _blocks(claimed: SentenceWords, own: SentenceWords) -> list[_Run]:
    """Runs of words that both have in the same order: where in the claim, where in the evidence, how many."""
    matcher = SequenceMatcher(None, claimed.stems, own.stems, autojunk=False)
    return [(block.a, block.b, block.size) for block in matcher.get_matching_blocks() if block.size]


def _gaps(claimed: SentenceWords, own: SentenceWords, blocks: list[_Run]) -> Iterator[_Gap]:
    """What lies between the runs, and behind the last one up to a mark of punctuation.

    Where the claim has another word in its place, nothing is left out.
    """
    for (at, place, size), (end, following, _) in pairwise(blocks):
        if _ADDED.issuperset(claimed.low[at + size : end]):
            yield _Gap(place + size, following, claimed.low[at + size - 1], at + size - 1)
    at, place, size = blocks[-1]
    if not _ADDED.issuperset(claimed.low[at + size :]):
        return
    behind = range(place + size, len(own.low))
    end = next((one for one in behind if one in own.breaks), len(own.low))
    yield _Gap(place + size, end, claimed.low[-1], len(claimed.low) - 1)


def _drops(own: SentenceWords, gap: _Gap, claimed: SentenceWords) -> bool:
    """Whether a content word of the gap is nowhere in the claim."""
    places = range(gap.start, gap.end)
    return any(own.low[at] not in FUNCTION_WORDS and own.stems[at] not in claimed.stems for at in places)


def _is_border(own: SentenceWords, gap: _Gap, is_ranked: bool) -> bool:
    """Whether a part of the sentence begins here, without a comma, that may say of whom, when or where it holds.

    What tells more of "a dense atmosphere" may go, unless the claim speaks of a kind.
    """
    first, behind = own.low[gap.start], own.low[gap.start + 1 : gap.start + 3]
    if gap.start in own.breaks or first in _JOINING or own.low[gap.end - 1] in _JOINING:
        return False
    if is_ranked:
        return first in _OPENINGS | PREPOSITIONS or first.endswith("ing") or gap.before in _OPERATORS
    is_time = first in ("in", "at", "by") and not _TIMES.isdisjoint(behind)
    is_of_some = not {"a", "an"}.isdisjoint(own.low[max(0, gap.start - _LOOK_BACK) : gap.start])
    is_opening = first in _OPENINGS or first.endswith(("ing", "ed")) or "than" in behind
    return is_time or ((is_opening or first[0].isdigit()) and not is_of_some)


def _is_ranked(own: SentenceWords, gap: _Gap) -> bool:
    """Whether "the first woman to" has become "the first to"."""
    is_behind = gap.before in ("first", "last") or _is_superlative(gap.before)
    if own.low[gap.end - 1] in _JOINING:
        return False
    is_most = gap.start > 1 and own.low[gap.start - 2] in ("most", "least") and gap.before not in FUNCTION_WORDS
    return (is_behind or is_most) and own.low[gap.start] not in _JOINING and gap.start not in own.breaks


def _is_splice(own: SentenceWords, gap: _Gap) -> bool:
    """Whether a preposition of the claim has what belongs to another part of the sentence behind it."""
    is_same = gap.end < len(own.low) and own.low[gap.start] == own.low[gap.end] and own.low[gap.start] in PREPOSITIONS
    if not is_same and gap.before not in PREPOSITIONS:
        return False
    inside = range(gap.start + 1, gap.end)
    is_split = any(at in own.breaks or own.low[at] in _JOINING for at in range(gap.start + 1, gap.end + 1))
    return is_split and any(own.is_verb[at] or own.low[at] in PREPOSITIONS | {"but"} for at in inside)


def _is_alternative(own: SentenceWords, gap: _Gap) -> bool:
    """Whether one of two things is left out, of which the sentence leaves open which."""
    return gap.start not in own.breaks and (own.low[gap.start] in ("or", "either") or own.low[gap.end - 1] == "or")


def _leaves_out_an_exception(claimed: SentenceWords, own: SentenceWords) -> bool:
    return _has_exception(own) and not _has_exception(claimed)


def _has_exception(text: SentenceWords) -> bool:
    return not _EXCEPTIONS.isdisjoint(text.low) or ("apart", "from") in zip(text.low, text.low[1:], strict=False)


def _widens_its_subject(claimed: SentenceWords, gaps: list[_Gap]) -> bool:
    """Whether "The standard warranty is" has become "The warranty is"; a name is the same without its adjectives."""
    is_named = any(end <= claimed.verb for end, _ in claimed.names)
    return not is_named and any(gap.place == 0 and gap.before in DETERMINERS for gap in gaps)


def _takes_its_subject_elsewhere(claimed: SentenceWords, own: SentenceWords, blocks: list[_Run]) -> bool:
    """Whether the claim begins with what the sentence has behind "of" or "under": "The University of Oslo was founded".

    Not if the claim has the word before that, too, or this is only what kind of place it is: "the city of Oslo".
    """
    at, place, _ = blocks[0]
    if any(low not in DETERMINERS for low in claimed.low[:at]):
        return False
    while place > 0 and own.low[place - 1] in DETERMINERS:
        place -= 1
    if place < 2 or own.low[place - 1] not in _GOVERNORS or place - 1 in own.breaks:
        return False
    head = own.low[place - 2]
    return head not in FUNCTION_WORDS | _PLACES and own.stems[place - 2] not in claimed.stems


def _is_general(text: SentenceWords) -> bool:
    """Whether a claim tells what holds, not what has happened."""
    return not _GENERAL.isdisjoint(text.low) or not (_PAST & {*text.low} or any(map(is_past, text.low)))


def _speaks_of_a_kind(text: SentenceWords) -> bool:
    """Whether a claim speaks of all, none, the most or a part of a kind."""
    is_part = any(low in _PARTS and text.low[at + 1 : at + 2] == ("of",) for at, low in enumerate(text.low))
    return is_part or not _OPERATORS.isdisjoint(text.low) or any(map(_is_superlative, text.low))


def _is_superlative(low: str) -> bool:
    return low in ("most", "least", "best", "worst") or (low.endswith("est") and len(low) > 5)
