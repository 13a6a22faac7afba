"""Of whom a sentence says what it says: found by its first verb, the words after it, and the names before it.

A claim can have all the words of its evidence and still be false: "Tikal is a twin-pyramid complex" on "Group Q is a
twin-pyramid complex, and is one of the largest at Tikal".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from ewe.text.english import DETERMINERS, FUNCTION_WORDS, MONTHS, PREPOSITIONS, PRONOUNS, normal_form, words_of
from ewe.verification.extraction.verbs import AUXILIARY_FORMS, PLAIN_VERBS

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_VERBS = AUXILIARY_FORMS | PLAIN_VERBS
_JOINTS = (" ", "-", ". ")  # What stands between the words of one name.
_CACHED_TEXTS = 8192
_STAND_INS = PRONOUNS | words_of("that which")
_BE = words_of("is are was were been being be")
_ENDS = PREPOSITIONS | _STAND_INS
_PLACES = PREPOSITIONS - {"by"}
_NO_NAMES = FUNCTION_WORDS | MONTHS.keys() | words_of("monday tuesday wednesday thursday friday saturday sunday")
_IN_ORDER = 0.75
_REACH = 4  # More words than the claim's predicate has, in which a sentence may say the same.
_LINKS = PREPOSITIONS | DETERMINERS | AUXILIARY_FORMS | words_of("be been being")
_NOT_YET = words_of("will shall might almost nearly likely probably possibly perhaps allegedly reportedly supposedly")
_AIMS = frozenset(
    map(
        normal_form,
        words_of(
            """expected planned intended hoped proposed scheduled aimed failed refused declined attempted wanted wished
            due set supposed alleged rumoured rumored believed claimed said thought"""
        ),
    )
)

Name = frozenset[str]
"""The stems of one name's words."""


@dataclass(frozen=True, slots=True)
class _Words:
    """low: the words; stems: of each; is_verb: whether it is a finite verb; names: where one ends, and its words."""

    low: tuple[str, ...]
    stems: tuple[str, ...]
    is_verb: tuple[bool, ...]
    names: tuple[tuple[int, Name], ...]

    @property
    def verb(self) -> int:
        """Where the first verb is; behind the last word if there is none."""
        return self.is_verb.index(True) if True in self.is_verb else len(self.low)


def tells_of_another(claim: str, sentence: str) -> bool:
    """Whether the claim says of a name what the sentence says of others; False where that is not plain to see.

    A name that the sentence writes small is none, and one that it has behind what it says may be meant by it, as in
    "they founded two towns: Ada and Lind" or "founded by Ada".
    """
    claimed, own = _read(claim), _read(sentence)
    small = set(own.stems).difference(*(name for _, name in own.names))
    named = [name for name, _ in _names_between(claimed, 0, claimed.verb) if name.isdisjoint(small)]
    start = _where_it_says(own, claimed.stems[claimed.verb :], claimed.low[claimed.verb :])
    if not named or start is None:
        return False
    verbs = [at for at in range(start + 1) if own.is_verb[at]]
    last = verbs[-1] if verbs else start
    first = verbs[-2] + 1 if len(verbs) > 1 else 0
    if not _STAND_INS.isdisjoint(own.low[first:last]):
        return False
    before, behind = _names_between(own, first, last), _names_between(own, start, len(own.low))
    meant = [name for name, _ in before] + [name for name, may_be_subject in behind if may_be_subject]
    is_named = any(one <= name or name <= one for one in meant for name in named)
    return not is_named and any(may_be_subject for _, may_be_subject in before)


def says_more_often(claim: str, evidence: str) -> bool:
    """Whether the claim says a content word of its predicate more often than the evidence has it."""
    claimed, own = _read(claim), Counter(_read(evidence).stems)
    names = frozenset[str]().union(*(name for _, name in claimed.names))
    predicate = Counter(word for word in _predicate(claimed) if word not in names)
    return any(count > max(1, own[word]) for word, count in predicate.items())


def takes_from_the_lead(claim: str, sentence: str) -> bool:
    """Whether the claim says what only the sentence before can have said: "is open on Mondays" on "It is open all week.
    It is closed on Mondays". sentence: under its title, without the one before it, which may name its subject alone.
    """
    return not set(_predicate(_read(claim))) <= set(_read(sentence).stems)


def _predicate(text: _Words) -> list[str]:
    """The content words from the first verb on, as stems."""
    return _content_stems(text.stems[text.verb :], text.low[text.verb :])


def says_in_another_order(claim: str, evidence: str, title: str = "") -> bool:
    """Whether a claim has the content words of the evidence in an order that may say another thing; title: its title.

    It has if fewer than three in four come in the order of the evidence: "It is 19 km south of Guatemala City" has all
    words of "It is 303 km north of Guatemala City, and 19 km south of Uaxactun", and none of what they say. Nor may a
    word have another place than in the evidence, unless its preposition goes with it: "In 1910 Ada met Bo" says the
    same as "Ada met Bo in 1910", and "Bo met Ada in 1910" does not. A name of the title may stand anywhere: it is
    often a pronoun's. "The race was won by Ada" is read as "Ada won the race".
    """
    claimed, own, titled = _read(claim), _read(evidence), set(_read(title).stems)
    claimed, own = _in_active(claimed, own), _in_active(own, claimed)
    content, others = _content(claimed, titled), _content(own, titled)
    in_order = _longest_common(claimed, content, own, others)
    if len(in_order) < _IN_ORDER * len(content):
        return True
    moved = [at for before, at in pairwise([-1, *content]) if at not in in_order and (before in in_order or before < 0)]
    return not all(_keeps_its_preposition(claimed, at, own) for at in moved)


def _in_active(text: _Words, other: _Words) -> _Words:
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


def takes_as_done(claim: str, evidence: str) -> bool:
    """Whether the claim states what the evidence only plans or reports: "will be opened", "was expected to win"."""
    claimed, own = Counter(_read(claim).stems), _read(evidence)
    return any(
        count >= own.stems.count(word)
        for word, count in (_undone(own) - _undone(_read(claim))).items()
        if word in claimed
    )


def names_another(claim: str, evidence: str) -> bool:
    """Whether the claim has a name behind its verb where the evidence has another one: "led by Berg" on "led by Holm,
    who succeeded Berg". Names in a list are in one place.
    """
    own = _placed_names(_read(evidence))
    return any(
        (others := own.get(place)) is not None
        and not any(one <= name or name <= one for one in others for name in names)
        for place, names in _placed_names(_read(claim)).items()
    )


def _placed_names(text: _Words) -> dict[tuple[str, str], list[Name]]:
    """The names behind the first verb, by the nearest word before them and what links them to it ("led", "by")."""
    placed: dict[tuple[str, str], list[Name]] = {}
    last_end, place = 0, ("", "")
    for end, name in text.names:
        begin = end - len(name)
        goes_on = begin == last_end or (begin == last_end + 1 and text.low[last_end] in ("and", "or"))
        if begin > text.verb and not goes_on:
            at = begin - 1 - (text.low[begin - 1] in ("the", "a", "an"))
            link = text.low[at] if text.low[at] in _LINKS else ""
            word = next((one for one in range(at, -1, -1) if text.low[one] not in _LINKS), 0)
            place = (text.stems[word], link)
        if begin > text.verb:
            placed.setdefault(place, []).append(name)
        last_end = end
    return placed


def _undone(text: _Words) -> Counter[str]:
    """The content words right behind one that takes their truth away, how often each; a number is none."""
    openings = (
        at
        for at, low in enumerate(text.low)
        if low in _NOT_YET or (text.stems[at] in _AIMS and text.low[at + 1 : at + 2] == ("to",))
    )
    behind = (
        next(
            (word for word, low in zip(text.stems[at + 1 :], text.low[at + 1 :], strict=True) if low not in _LINKS), ""
        )
        for at in openings
    )
    return Counter(word for word in behind if word and not word[0].isdigit())


def _content_stems(stems: Sequence[str], low: Sequence[str]) -> list[str]:
    """The stems of the words that are not function words."""
    return [word for word, form in zip(stems, low, strict=True) if form not in FUNCTION_WORDS]


def _content(text: _Words, titled: Set[str]) -> list[int]:
    """The places of the words that are neither function words nor of the title."""
    places = range(len(text.low))
    return [at for at in places if text.low[at] not in FUNCTION_WORDS and text.stems[at] not in titled]


def _longest_common(claimed: _Words, content: Sequence[int], own: _Words, others: Sequence[int]) -> set[int]:
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


def _keeps_its_preposition(claimed: _Words, at: int, own: _Words) -> bool:
    """Whether a word of the claim stands behind a preposition, and behind the same one in the evidence."""
    preposition = _preposition_before(claimed, at)
    places = (place for place, word in enumerate(own.stems) if word == claimed.stems[at])
    return preposition != "" and any(_preposition_before(own, place) == preposition for place in places)


def _preposition_before(text: _Words, at: int) -> str:
    """The preposition before a word, with none but function words between; "" if there is none."""
    while at > 0 and text.low[at - 1] in FUNCTION_WORDS:
        at -= 1
        if text.low[at] in PREPOSITIONS:
            return text.low[at]
    return ""


def _where_it_says(own: _Words, predicate: Sequence[str], low: Sequence[str]) -> int | None:
    """Where the sentence has the predicate's first content word with most of the others after it."""
    content = [word for word, form in zip(predicate, low, strict=True) if form not in FUNCTION_WORDS]
    if not content:
        return None
    places = [at for at, word in enumerate(own.stems) if word == content[0]]
    reach = len(predicate) + _REACH
    return max(places, key=lambda at: len(set(content) & set(own.stems[at : at + reach])), default=None)


def _names_between(text: _Words, first: int, last: int) -> list[tuple[Name, bool]]:
    """The names among these words, and whether each may be what is spoken of: after "in" or "of" none is."""
    names = []
    for end, name in text.names:
        begin = end - len(name)
        before = text.low[begin - 1] if begin > 0 else ""
        before = text.low[begin - 2] if before in ("the", "a", "an") and begin > 1 else before
        if first <= begin and end <= last:
            names.append((name, before not in _PLACES))
    return names


@lru_cache(maxsize=_CACHED_TEXTS)
def _read(text: str) -> _Words:
    low: list[str] = []
    stems: list[str] = []
    names: list[tuple[int, Name]] = []
    name_end = 0
    for match in _WORD.finditer(text):
        word = match[0].lower()
        low.append(word.replace("’", "'"))
        word = low[-1].removesuffix("'s")
        stems.append(normal_form(word))
        if match[0][0].isupper() and word not in _NO_NAMES:
            goes_on = bool(names) and names[-1][0] == len(low) - 1 and text[name_end : match.start()] in _JOINTS
            name = (names.pop()[1] if goes_on else frozenset()) | {stems[-1]}
            names.append((len(low), name))
            name_end = match.end()
    is_verb = tuple(word in _VERBS for word in low)
    return _Words(tuple(low), tuple(stems), is_verb, tuple(names))
