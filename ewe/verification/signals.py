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
_DEGREES = words_of(
    """all every each some any few fewer many most several only both none always never sometimes often usually rarely
    generally may might must will would could should can certainly probably possibly perhaps likely more less least
    better worse best worst first last before after since until above below within outside inside over under north south
    east west northern southern eastern western hundred thousand million billion trillion day days week weeks month
    months year years decade decades century centuries hour hours minute minutes second seconds metre metres meter
    meters kilometre kilometres kilometer kilometers km mile miles mi foot feet acre acres hectare hectares pound pounds
    dollar dollars euro euros percent kilogram kilograms ton tons tonne tonnes large larger largest small smaller
    smallest great greater greatest high higher highest low lower lowest old older oldest young younger youngest early
    earlier late later long longer short shorter strong stronger weak weaker fast faster slow slower increase increased
    decrease decreased rose fell majority minority internal external"""
)
"""Words that tell how many, how much, which way or how surely: with another of them a sentence says another thing."""
_CACHED_TEXTS = 8192

SIGNALS = ("numbers", "names", "negations", "words", "one word", "degrees", "order")
"""What `signals` counts, in its order."""


def signals(claim: str, sentence: str, led: str) -> tuple[float, ...]:
    """Per signal how much of the claim the evidence lacks, each in [0, 1]; 0 where it lacks nothing.

    sentence: of the evidence; led: under its title, with the sentence before it that its pronoun needs. numbers, names: whether
    a number (month, ordinal) or a name of the claim is missing. negations: whether one of claim and sentence is negated
    and the other is not. words: the share of the claim's content words that are missing. one word: whether these are
    few of many, 1 to 3 of at least 6. degrees: whether a word that tells how much or which way is missing in the sentence.
    order: whether names that claim and sentence share come in another order.
    """
    said, own, shown = _read(claim), _read(sentence), _read(led)
    content = said.stems - _SAID_ANYWAY
    missing = content - shown.stems
    return (
        float(bool(said.numbers - shown.numbers)),
        float(not said.names.keys() <= shown.stems),
        float(said.negations % 2 != own.negations % 2),
        len(missing) / max(1, len(content)),
        float(len(content) >= _ENOUGH and 1 <= len(missing) <= _FEW),
        float(not said.degrees <= own.degrees),
        float(_shared(said, own) != _shared(own, said)),
    )


def _shared(text: _Text, other: _Text) -> list[str]:
    """The names of a text that the other has too, in the order of the text."""
    return [name for name in text.names if name in other.names]


def speaks_of_the_same(claim: str, evidence: str) -> bool:
    """Whether the evidence has a name of the claim, or its first word; without any of these, a content word."""
    said, shown = _read(claim), _read(evidence)
    return not shown.stems.isdisjoint(said.names.keys() | said.opening or said.stems - _SAID_ANYWAY)


@dataclass(frozen=True, slots=True)
class _Text:
    stems: frozenset[str]
    numbers: frozenset[str]
    names: dict[str, None]  # in the order of the text
    opening: frozenset[str]
    degrees: frozenset[str]
    negations: int


@lru_cache(maxsize=_CACHED_TEXTS)
def _read(text: str) -> _Text:
    stems: set[str] = set()
    numbers: set[str] = set()
    names: dict[str, None] = {}
    opening: set[str] = set()
    degrees: set[str] = set()
    negations = 0
    for match in _TOKEN.finditer(text):
        low = match[0].lower()
        word = _norm(low)
        stems.add(word)
        degrees |= {low} & _DEGREES
        negations += low in _NEGATIONS or low.endswith(("n't", "n’t"))
        if low[0].isdigit() or low in _NUMBERS:
            numbers.add(word)
        elif match[0][0].isupper() and low not in FUNCTION_WORDS:
            names.setdefault(word)
            if match.start() == 0:
                opening.add(word)
    return _Text(frozenset(stems), frozenset(numbers), names, frozenset(opening), frozenset(degrees), negations)


def _norm(word: str) -> str:
    """ "1,200" as "1200", "three" as "3", anything else by its stem."""
    if word[0].isdigit():
        return word.replace(",", "")
    return str(NUMBER_WORDS[word]) if word in NUMBER_WORDS else stem(word)
