"""Of whom a sentence says what it says: found by its first verb, the words after it, and the names before it.

A claim can have all the words of its evidence and still be false: "Tikal is a twin-pyramid complex" on "Group Q is a
twin-pyramid complex, and is one of the largest at Tikal".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ewe.text.english import FUNCTION_WORDS, MONTHS, PREPOSITIONS, PRONOUNS, SAME_WORDS, stem, words_of
from ewe.verification.extraction.verbs import AUXILIARY_FORMS, PLAIN_VERBS

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_VERBS = AUXILIARY_FORMS | PLAIN_VERBS
_JOINTS = (" ", "-", ". ")  # What stands between the words of one name.
_CACHED_TEXTS = 8192
_PLACES = PREPOSITIONS - {"by"}
_NO_NAMES = FUNCTION_WORDS | MONTHS.keys() | words_of("monday tuesday wednesday thursday friday saturday sunday")
_IN_ORDER = 0.75
_REACH = 4  # More words than the claim's predicate has, in which a sentence may say the same.

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
    if not PRONOUNS.isdisjoint(own.low[first:last]):
        return False
    before, behind = _names_between(own, first, last), _names_between(own, start, len(own.low))
    meant = [name for name, _ in before] + [name for name, may_be_subject in behind if may_be_subject]
    is_named = any(one <= name or name <= one for one in meant for name in named)
    return not is_named and any(may_be_subject for _, may_be_subject in before)


def says_more_often(claim: str, evidence: str) -> bool:
    """Whether the claim says a content word of its predicate more often than the evidence has it."""
    claimed, own = _read(claim), Counter(_read(evidence).stems)
    names = frozenset[str]().union(*(name for _, name in claimed.names))
    predicate = [
        word
        for low, word in zip(claimed.low[claimed.verb :], claimed.stems[claimed.verb :], strict=True)
        if low not in FUNCTION_WORDS and word not in names
    ]
    return any(count > max(1, own[word]) for word, count in Counter(predicate).items())


def says_in_another_order(claim: str, evidence: str) -> bool:
    """Whether fewer than three in four of the claim's content words come in the order of the evidence.

    "It is 19 km south of Guatemala City" has all words of "It is 303 km north of Guatemala City, and 19 km south of
    Uaxactun", and none of what they say.
    """
    claimed, own = (_content(one.stems, one.low) for one in (_read(claim), _read(evidence)))
    return _longest_common(claimed, own) < _IN_ORDER * len(claimed)


def _content(stems: Sequence[str], low: Sequence[str]) -> list[str]:
    """The stems of the words that are not function words."""
    return [word for word, form in zip(stems, low, strict=True) if form not in FUNCTION_WORDS]


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(second) + 1)
    for one in first:
        before = 0
        for at, other in enumerate(second, 1):
            before, row[at] = row[at], before + 1 if one == other else max(row[at], row[at - 1])
    return row[-1]


def _where_it_says(own: _Words, predicate: Sequence[str], low: Sequence[str]) -> int | None:
    """Where the sentence has the predicate's first content word with most of the others after it."""
    content = _content(predicate, low)
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
        stems.append(stem(SAME_WORDS.get(word, word)))
        if match[0][0].isupper() and word not in _NO_NAMES:
            goes_on = bool(names) and names[-1][0] == len(low) - 1 and text[name_end : match.start()] in _JOINTS
            name = (names.pop()[1] if goes_on else frozenset()) | {stems[-1]}
            names.append((len(low), name))
            name_end = match.end()
    is_verb = tuple(word in _VERBS for word in low)
    return _Words(tuple(low), tuple(stems), is_verb, tuple(names))
