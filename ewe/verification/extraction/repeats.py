"""Sentences that say nothing beyond what an earlier one of the same text says, or what they said themselves."""

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

_TURNS_ROUND = frozenset(
    map(
        stem,
        words_of(
            """not no never none neither nor without hardly except unless if may might could would should can likely
            probably possibly perhaps allegedly reportedly said says say claimed claims claim believed planned only"""
        ),
    )
)
_FEWEST = 4  # Content words of what one sentence may say again of another that says more.
_LOOP_WORDS, _LOOP_TIMES = 4, 3

Key = tuple[frozenset[str], tuple[str, ...]]
"""The stems of content words, words of direction with what follows them, and the stems of names in their order."""


def content_key(text: str) -> Key:
    """What two sentences share that say the same: content words in any order, names in the same order."""
    tokens = [word for word in words(text) if word not in _SAYS_NOTHING]
    pairs = zip(tokens, [*tokens[1:], ""], strict=False)
    stems = frozenset(f"{word} {after}" if word in _DIRECTIONS else stem(word) for word, after in pairs)
    named = [match[0] for match in re.finditer(r"[^\W_]+", text)]
    order = tuple(dict.fromkeys(stem(word.lower()) for word in named if word[0].isupper()))
    return stems, order


def adds_nothing(one: Key, other: Key) -> bool:
    """Whether a key has no content word beyond another's, and those names that both write as names in the same order.

    What the other has beside them may not turn it round: "It was not built in 1900" says another thing.
    """
    if not one[0] or not one[0] <= other[0] or not _TURNS_ROUND.isdisjoint(other[0] - one[0]):
        return False
    if one[0] != other[0] and len(one[0]) < _FEWEST:
        return False
    shared = set(one[1]) & set(other[1])
    return [word for word in one[1] if word in shared] == [word for word in other[1] if word in shared]


def loops(text: str) -> bool:
    """Whether a text says the same four words three times, as models do that have lost their way."""
    tokens = words(text)
    runs = Counter(tuple(tokens[at : at + _LOOP_WORDS]) for at in range(len(tokens) - _LOOP_WORDS + 1))
    return max(runs.values(), default=0) >= _LOOP_TIMES
