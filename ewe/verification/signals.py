"""What a sentence says that its evidence does not, counted without a model: numbers, names, negations, words.

Owns: these signals, which stand beside a judge's word in the decision, and whether two texts speak of the same. Knows
words and stems; no judge, no verdicts. A sentence that repeats its evidence with one word changed is what judges read
past; counting finds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ewe.verification.stems import stem
from ewe.verification.wordlists import FUNCTION_WORDS, MONTHS, NUMBER_WORDS, ORDINALS, words_of

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_NEGATIONS = words_of("not no never none neither nor without cannot nobody nothing")
_NUMBERS = frozenset({*MONTHS, *NUMBER_WORDS, *ORDINALS}) - {"may", "march", "second", "one"}
_SAID_ANYWAY = (FUNCTION_WORDS - _NUMBERS) | _NEGATIONS
_FEW, _ENOUGH = 3, 6  # Missing words that a change leaves, and words below which they are no small part.
_CACHED_TEXTS = 8192

SIGNALS = ("numbers", "names", "negations", "words", "one word")
"""What `signals` counts, in its order."""


def signals(claim: str, sentence: str, led: str) -> tuple[float, ...]:
    """Per signal how much of the claim the evidence lacks, each in [0, 1]; 0 where it lacks nothing.

    sentence: of the evidence; led: the same with the sentence before it that its pronoun needs. numbers, names: whether
    a number (month, ordinal) or a name of the claim is missing. negations: whether one of claim and sentence is negated
    and the other is not. words: the share of the claim's content words that are missing. one word: whether these are
    few of many, 1 to 3 of at least 6.
    """
    said, shown = _read(claim), _read(led)
    content = said.stems - _SAID_ANYWAY
    missing = content - shown.stems
    return (
        float(bool(said.numbers - shown.numbers)),
        float(bool(said.names - shown.stems)),
        float(said.negations % 2 != _read(sentence).negations % 2),
        len(missing) / max(1, len(content)),
        float(len(content) >= _ENOUGH and 1 <= len(missing) <= _FEW),
    )


def speaks_of_the_same(claim: str, evidence: str) -> bool:
    """Whether the evidence has a name of the claim, or its first word; without any of these, a content word."""
    said, shown = _read(claim), _read(evidence)
    return not shown.stems.isdisjoint(said.names | said.opening or said.stems - _SAID_ANYWAY)


@dataclass(frozen=True, slots=True)
class _Text:
    stems: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    opening: frozenset[str]
    negations: int


@lru_cache(maxsize=_CACHED_TEXTS)
def _read(text: str) -> _Text:
    stems, numbers, names, opening, negations = set(), set(), set(), set(), 0
    for match in _TOKEN.finditer(text):
        low = match[0].lower()
        word = _norm(low)
        stems.add(word)
        negations += low in _NEGATIONS or low.endswith(("n't", "n’t"))
        if low[0].isdigit() or low in _NUMBERS:
            numbers.add(word)
        elif match[0][0].isupper() and low not in FUNCTION_WORDS:
            (names if match.start() > 0 else opening).add(word)
    return _Text(*map(frozenset, (stems, numbers, names, opening)), negations)


def _norm(word: str) -> str:
    """ "1,200" as "1200", "three" as "3", anything else by its stem."""
    if word[0].isdigit():
        return word.replace(",", "")
    return str(NUMBER_WORDS[word]) if word in NUMBER_WORDS else stem(word)
