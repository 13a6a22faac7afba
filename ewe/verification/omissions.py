"""What a claim leaves out of its evidence, by the place where it was: "[free] for students", "first [woman] to vote".

What happened stays true with less detail: "The bridge was built [in 1911 with money of the state]". What holds in
general, or of the most, the first, all or none of a kind, need not: who, when and where belong to it.
"""

from __future__ import annotations

from ewe.text.english import DETERMINERS, FUNCTION_WORDS, MONTHS, PREPOSITIONS, WEEKDAYS, is_past, words_of
from ewe.verification.left_out import Gap, Run, common_runs, gaps_with_content
from ewe.verification.limiting_words import SHARES, is_superlative
from ewe.verification.sentence_words import SentenceWords, read_words

_ARE, _WERE = words_of("is are"), words_of("was were")
_GENERAL = _ARE | words_of("has have may can must shall will do does")
_PAST = words_of(
    """ate beat bit bound broke burst cast caught cut dealt drove fed felt fled forgot froze hid hit hung lent let rode
    set shed shook shut slept sought split spread stole stuck swept swore threw tore withdrew wore wound"""
)
_NOT_PAST = words_of("goes lies dies marries going lying dying doing children men women wives lives")
"""Irregular forms that are none of the past."""
_EXCEPTIONS = words_of("except excepting excluding neither")
_OPERATORS = words_of(
    "only all every each any no none never not nobody nothing few fewer less more than majority minority always"
)
"""A claim with one of these says something of a kind, whose borders must not go."""
_PARTS = SHARES | words_of("half part")
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
_LOOK_BACK = 8  # words, for the article of what a part of a sentence belongs to


def leaves_out_a_border(claim: str, sentence: str) -> bool:
    """Whether what the claim leaves out of its sentence of evidence may be what makes that true."""
    claimed, own = read_words(claim), read_words(sentence)
    runs = common_runs(claimed, own)
    if not runs:
        return False
    gaps = gaps_with_content(claimed, own, runs)
    return (
        _leaves_out_an_exception(claimed, own)
        or _takes_its_subject_elsewhere(claimed, own, runs[0])
        or _leaves_out_what_comes_first(claimed, own)
        or _widens_its_subject(claimed, gaps)
        or any(rule(own, gap) for rule in _RULES for gap in gaps)
        or (_NEGATIONS.isdisjoint(claimed.low) and any(_is_alternative(own, gap) for gap in gaps))
        or (_speaks_of_a_kind(claimed) and any(_limits_a_kind(own, gap) for gap in gaps))
        or (_is_general(claimed) and any(_limits_what_holds(own, gap) for gap in gaps))
    )


def takes_as_present(claim: str, sentence: str) -> bool:
    """Whether the claim says that something is what the sentence says it was."""
    claimed, own = set(read_words(claim).low), set(read_words(sentence).low)
    return not _ARE.isdisjoint(claimed) and _ARE.isdisjoint(own) and not _WERE.isdisjoint(own)


def _leaves_out_an_exception(claimed: SentenceWords, own: SentenceWords) -> bool:
    return _has_exception(own) and not _has_exception(claimed)


def _has_exception(text: SentenceWords) -> bool:
    return not _EXCEPTIONS.isdisjoint(text.low) or ("apart", "from") in zip(text.low, text.low[1:], strict=False)


def _takes_its_subject_elsewhere(claimed: SentenceWords, own: SentenceWords, first: Run) -> bool:
    """Whether the claim begins with what the sentence has behind "of" or "under": "The University of Oslo was founded".

    Not if the claim has the word before that, too, or this is only what kind of place it is: "the city of Oslo".
    """
    if not DETERMINERS.issuperset(claimed.low[: first.at]):
        return False
    place = first.place
    while place > 0 and own.low[place - 1] in DETERMINERS:
        place -= 1
    if place < 2 or own.low[place - 1] not in _GOVERNORS or place - 1 in own.breaks:
        return False
    head = own.low[place - 2]
    return head not in FUNCTION_WORDS | _PLACES and own.stems[place - 2] not in claimed.stems


def _leaves_out_what_comes_first(claimed: SentenceWords, own: SentenceWords) -> bool:
    """Whether "Besides Oslo, it is the largest city" has become "It is the largest city"."""
    first = own.low[0]
    return first in _BEYOND and first not in claimed.low and _speaks_of_a_kind(claimed)


def _widens_its_subject(claimed: SentenceWords, gaps: list[Gap]) -> bool:
    """Whether "The standard warranty is" has become "The warranty is"; a name is the same without its adjectives."""
    is_named = any(end <= claimed.verb for end, _ in claimed.names)
    is_widened = not is_named and any(gap.at == 0 and gap.before in DETERMINERS for gap in gaps)
    return is_widened and _is_general(claimed)


def _is_condition(own: SentenceWords, gap: Gap) -> bool:
    return own.low[gap.start] in _CONDITIONS


def _goes_on_with_another(own: SentenceWords, gap: Gap) -> bool:
    """Whether the claim goes on behind a "whose" or "where" that it leaves out, but within its clause."""
    return own.low[gap.start] in _TURNS and gap.end not in own.breaks and gap.end < len(own.low)


def _is_ranked(own: SentenceWords, gap: Gap) -> bool:
    """Whether "the first woman to" has become "the first to"."""
    is_behind = gap.before in ("first", "last") or is_superlative(gap.before)
    is_most = gap.start > 1 and own.low[gap.start - 2] in ("most", "least") and gap.before not in FUNCTION_WORDS
    return (is_behind or is_most) and not _is_joined(own, gap)


def _is_splice(own: SentenceWords, gap: Gap) -> bool:
    """Whether a preposition of the claim has what belongs to another part of the sentence behind it."""
    is_same = own.low[gap.start] in PREPOSITIONS and own.low[gap.end : gap.end + 1] == (own.low[gap.start],)
    if not is_same and gap.before not in PREPOSITIONS:
        return False
    behind = range(gap.start + 1, min(gap.end + 1, len(own.low)))
    is_split = any(at in own.breaks or own.low[at] in _JOINING for at in behind)
    inside = range(gap.start + 1, gap.end)
    return is_split and any(own.is_verb[at] or own.low[at] in PREPOSITIONS | {"but"} for at in inside)


def _is_alternative(own: SentenceWords, gap: Gap) -> bool:
    """Whether one of two things is left out, of which the sentence leaves open which."""
    return gap.start not in own.breaks and (own.low[gap.start] in ("or", "either") or own.low[gap.end - 1] == "or")


def _limits_a_kind(own: SentenceWords, gap: Gap) -> bool:
    """Whether a part of the sentence begins here that may say which of a kind it speaks of: "the oldest [in town]"."""
    first = own.low[gap.start]
    is_opening = first in _OPENINGS | PREPOSITIONS or first.endswith("ing") or gap.before in _OPERATORS
    return is_opening and not _is_joined(own, gap)


def _limits_what_holds(own: SentenceWords, gap: Gap) -> bool:
    """Whether a part of the sentence begins here that may say of whom or when it holds: "free [on Mondays]".

    What tells more of "a dense atmosphere" may go.
    """
    first, behind = own.low[gap.start], own.low[gap.start + 1 : gap.start + 3]
    is_time = first in ("in", "at", "by") and not _TIMES.isdisjoint(behind)
    is_of_some = not {"a", "an"}.isdisjoint(own.low[max(0, gap.start - _LOOK_BACK) : gap.start])
    is_opening = first in _OPENINGS or first.endswith(("ing", "ed")) or "than" in behind or first[0].isdigit()
    return (is_time or (is_opening and not is_of_some)) and not _is_joined(own, gap)


def _is_joined(own: SentenceWords, gap: Gap) -> bool:
    """Whether a mark or an "and" sets apart what is left out."""
    return gap.start in own.breaks or own.low[gap.start] in _JOINING or own.low[gap.end - 1] in _JOINING


def _is_general(text: SentenceWords) -> bool:
    """Whether a claim tells what holds, not what has happened."""
    is_told = any(low in _PAST or (is_past(low) and low not in _NOT_PAST) for low in text.low)
    return not _GENERAL.isdisjoint(text.low) or not is_told


def _speaks_of_a_kind(text: SentenceWords) -> bool:
    """Whether a claim speaks of all, none, the most or a part of a kind."""
    is_part = any(low in _PARTS and text.low[at + 1 : at + 2] == ("of",) for at, low in enumerate(text.low))
    return is_part or not _OPERATORS.isdisjoint(text.low) or any(map(is_superlative, text.low))


_RULES = (_is_condition, _goes_on_with_another, _is_ranked, _is_splice)
