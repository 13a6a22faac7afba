"""What a sentence says that its evidence does not, counted without a model: numbers, names, negations, degrees, words.

A sentence that repeats its evidence with one word changed is what judges read past; counting finds it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache

from ewe.text.english import FUNCTION_WORDS, MONTHS, NUMBER_WORDS, ORDINALS, SAME_WORDS, normal_form, words_of
from ewe.types import Passage
from ewe.verification.negations import NEGATIONS, negations_of
from ewe.verification.sentence_words import WORD

_NUMBERS = frozenset({*MONTHS, *NUMBER_WORDS, *ORDINALS}) - {"may", "march", "mar", "second", "one"}
_SAID_ANYWAY = (FUNCTION_WORDS - _NUMBERS) | NEGATIONS
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
_HEDGES = words_of("may might could would can likely probably possibly perhaps")
_NAME_PARTS = words_of("the a an of and or")
_PRONOUNS = words_of("he she it they his her its their")
_JOINTS = (" ", "-", ". ")  # What stands between the words of one name.
_NEAR = 0.2  # Share of a claim's words that may be missing in a sentence that says nearly the same,
_LEAST = 3  # Content words of a claim that is a part of one,
_MORE = 0.5  # and share of the sentence's that a short claim may lack.
_CACHED_TEXTS = 8192

SIGNALS = ("numbers", "names", "negations", "words", "one word", "degrees", "certainty")
"""What `signals` counts, in its order."""


def signals(claim: str, sentence: str, led: str) -> tuple[float, ...]:
    """Per signal how much of the claim the evidence lacks, each in [0, 1]; 0 where it lacks nothing.

    sentence: of the evidence; led: under its title, with the sentence before it that its pronoun needs. numbers, names:
    whether a number (month, ordinal) or every word of a name of the claim is missing: texts shorten names. What only
    title and lead name is there once, for the sentence's own pronoun.
    negations: whether one of claim and sentence is negated and the other is not; in a sentence that says much more, a
    negation may be of something else, and what negates only words that the claim leaves out does not count. words: the
    share of the claim's content words that are missing. one word: whether these are few of many, 1 to 3 of at least 6.
    degrees: whether a word that tells how much or which way is missing in the sentence. certainty: whether the claim
    lacks a "may" or "probably" of the sentence.
    """
    claimed, own, context = _read(claim), _read(sentence), _read(led)
    names = _missing_names(claimed, own, context)
    missing = claimed.content - context.stems | claimed.content & names
    is_alike = not _says_much_more(own, claimed)
    negations = len(negations_of(claim))
    return (
        float(bool(claimed.numbers - context.numbers)),
        float(bool(names)),
        float((negations > 0 or is_alike) and negations % 2 != _negations(claim, sentence, led) % 2),
        len(missing) / max(1, len(claimed.content)),
        float(len(claimed.content) >= _ENOUGH and 1 <= len(missing) <= _FEW),
        float(not claimed.degrees <= own.degrees),
        float(is_alike and not own.degrees & _HEDGES <= claimed.degrees),
    )


def _negations(claim: str, sentence: str, led: str) -> int:
    """How many negations of the evidence bear on the claim: of title and lead those of what it has from there alone,
    or that end them ("We do not pay for:").
    """
    claimed, own = _read(claim), _read(sentence)
    from_lead = claimed.content - own.stems - claimed.names.keys()
    near, all_of_led = negations_of(sentence), negations_of(led)
    bearing = sum(not one.is_aside or not one.words.isdisjoint(claimed.content) for one in near)
    of_lead = sum(not one.words.isdisjoint(from_lead) for one in all_of_led)
    return bearing + of_lead + sum(not one.words for one in all_of_led) - sum(not one.words for one in near)


def _missing_names(claimed: _Text, own: _Text, context: _Text) -> frozenset[str]:
    """The words of names that are in no evidence, or in title and lead alone, where another name or a pronoun of the
    claim already stands for them: "He was mayor of Tusa" under the title "Vincenzo Tusa".
    """
    lacking = [name for name in claimed.full_names if own.stems.isdisjoint(name)]
    words = [word for name in lacking for word in name]
    first = min(map(claimed.words.index, words), default=0)
    if len(words) == len(set(words)) and _PRONOUNS.isdisjoint(claimed.words[:first]):
        lacking = [name for name in lacking if context.stems.isdisjoint(name)]
    return frozenset[str]().union(*lacking)


def misplaces_a_name(claim: str, sentence: str, led: str) -> bool:
    """Whether a claim says of a name of title or lead what the sentence says of others; arguments as of `signals`."""
    context = _read(led)
    return not _missing_names(_read(claim), _read(sentence), context).isdisjoint(context.stems)


def says_nearly_the_same(claim: str, sentence: str, led: str) -> bool:
    """Whether nearly all content words of a claim are in a sentence of evidence; arguments as of `signals`.

    A claim of few words has them in many a sentence: there, most of the sentence's must be in the claim as well, or the
    claim must be a part of it, word for word.
    """
    claimed, own, context = _read(claim), _read(sentence), _read(led)
    if len(claimed.content - context.stems) > _NEAR * max(1, len(claimed.content)):
        return False
    is_whole = len(claimed.content) >= _ENOUGH and len(claimed.content - own.stems) <= _NEAR * len(claimed.content)
    return is_whole or not _says_much_more(own, claimed) or _is_part(claimed, own)


def _is_part(claimed: _Text, own: _Text) -> bool:
    """Whether a sentence has all words of a claim that is no mere name behind each other."""
    length = len(claimed.words)
    starts = range(len(own.words) - length + 1)
    is_there = any(own.words[start : start + length] == claimed.words for start in starts)
    return is_there and len(claimed.content) >= _LEAST


def repeats_the_words(claim: str, led: str) -> bool:
    """Whether a claim has no content word, number or degree that a sentence of evidence lacks; led: as of `signals`."""
    claimed, context = _read(claim), _read(led)
    return claimed.content | claimed.numbers <= context.stems and claimed.degrees <= context.degrees


def _says_much_more(own: _Text, claimed: _Text) -> bool:
    """Whether most of a sentence's content words are not in the claim."""
    return len(own.content - claimed.content) > _MORE * len(own.content)


def swaps_names(claim: str, sentence: str) -> bool:
    """Whether a claim has the words of a sentence in their order, but names of it in each other's place.

    Names in a list may come in any order, and so may those of a sentence that is put in another way.
    """
    claimed, own = _read(claim), _read(sentence)
    shared = claimed.names.keys() & own.names.keys()
    if _in_order(claimed, shared) == _in_order(own, shared):
        return False
    rest = iter(own.words)
    return all(word in rest for word in claimed.words if word not in shared | _NAME_PARTS)


def _in_order(text: _Text, names: Set[str]) -> list[str]:
    """The names in the order of the text, each once; those of one list by the alphabet."""
    lists: list[dict[str, None]] = [{}]
    for word in text.words:
        if word in names:
            lists[-1][word] = None
        elif lists[-1] and word not in text.names and word not in ("and", "or"):
            lists.append({})
    return list(dict.fromkeys(name for one in lists for name in sorted(one)))


def speaks_of_the_same(claim: str, evidence: str) -> bool:
    """Whether the evidence has a name of the claim, or its first word; without any of these, a content word."""
    claimed, context = _read(claim), _read(evidence)
    return not context.stems.isdisjoint(claimed.names.keys() | claimed.opening or claimed.content)


def speaks_of_another(claim: str, wording: str, passage: Passage) -> bool:
    """Whether a passage is about somebody else than whom the wording's pronoun stands for, whom the claim names.

    It is if it lacks a word of that name and its title has another name: "Kublai Khan" where "Genghis Khan" is meant.
    So is one whose title has another number behind a name of the claim: "Route 29" where "Route 50" is meant.
    """
    numbered, titled = _read(claim).numbered, _read(passage.title).numbered
    if any(name in numbered and numbered[name].isdisjoint(numbers) for name, numbers in titled.items()):
        return True
    meant = _read(claim).names.keys() - _read(wording).names.keys()
    if not meant or not passage.title:
        return False
    stems_of_passage = _read(f"{passage.title} {passage.text}").stems
    return not meant <= stems_of_passage and not _read(passage.title).names.keys() <= meant


@dataclass(frozen=True, slots=True)
class _Text:
    words: tuple[str, ...]
    stems: frozenset[str]
    content: frozenset[str]
    numbers: frozenset[str]
    names: dict[str, None]
    full_names: tuple[frozenset[str], ...]
    numbered: dict[str, set[str]]
    opening: frozenset[str]
    degrees: frozenset[str]


@lru_cache(maxsize=_CACHED_TEXTS)
def _read(text: str) -> _Text:
    words: list[str] = []
    numbers: set[str] = set()
    names: dict[str, None] = {}
    full_names: list[frozenset[str]] = []
    numbered: dict[str, set[str]] = {}
    opening: set[str] = set()
    degrees: set[str] = set()
    name_end = 0
    for match in WORD.finditer(text):
        low = match[0].lower()
        word = normal_form(low)
        words.append(word)
        is_may = match[0] == "May" and match.start() > 0  # the month
        degrees |= set() if is_may else {SAME_WORDS.get(low, low)} & _DEGREES
        if low[0].isdigit() or low in _NUMBERS or is_may:
            numbers.add(word)
            if names and text[name_end : match.start()] == " " and low[0].isdigit():
                numbered.setdefault(words[-2], set()).add(word)
        elif match[0][0].isupper() and low not in FUNCTION_WORDS:
            names.setdefault(word)
            goes_on = bool(full_names) and text[name_end : match.start()] in _JOINTS
            full_names.append((full_names.pop() if goes_on else frozenset()) | {word})
            name_end = match.end()
            if match.start() == 0:
                opening.add(word)
    stems = frozenset(words)
    sets = (tuple(full_names), numbered, frozenset(opening), frozenset(degrees))
    return _Text(tuple(words), stems, stems - _SAID_ANYWAY, frozenset(numbers), names, *sets)
