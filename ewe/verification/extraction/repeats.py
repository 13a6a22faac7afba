"""Sentences that only say again what an earlier one of the same text says, or what they said themselves."""

import re
from collections import Counter

from ewe.text.english import stem, words_of
from ewe.text.words import words

_SAYS_NOTHING = words_of(
    """a an the this that these those of in on at for with and also is was are were be been has have had it he she they
    his her its their as who which however thus overall indeed
    again too"""
)
_DIRECTIONS = words_of("to from by than before after over under into between against")

_LOOP_WORDS, _LOOP_TIMES = 4, 3

Key = tuple[frozenset[str], tuple[str, ...]]
"""The stems of content words, words of direction with what follows them, and the stems of names in their order."""


def content_key(text: str) -> Key:
    """What two sentences share that say the same: content words in any order, names in the same order."""
    tokens = [word for word in words(text) if word not in _SAYS_NOTHING]
    pairs = zip(tokens, [*tokens[1:], ""], strict=False)
    stems = frozenset(f"{word} {after}" if word in _DIRECTIONS else stem(word) for word, after in pairs)
    named = [match[0] for match in re.finditer(r"[^\W_]+", text)]
    order = tuple(dict.fromkeys(stem(word.lower()) for word in named[1:] if word[0].isupper()))
    return stems, order


def says_the_same(one: Key, other: Key) -> bool:
    """Whether two keys have the same content words, and those names that both write as names in the same order."""
    if not one[0] or one[0] != other[0]:
        return False
    shared = set(one[1]) & set(other[1])
    return [word for word in one[1] if word in shared] == [word for word in other[1] if word in shared]


def loops(text: str) -> bool:
    """Whether a text says the same four words three times, as models do that have lost their way."""
    tokens = words(text)
    runs = Counter(tuple(tokens[at : at + _LOOP_WORDS]) for at in range(len(tokens) - _LOOP_WORDS + 1))
    return max(runs.values(), default=0) >= _LOOP_TIMES
