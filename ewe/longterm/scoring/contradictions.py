"""What a new memory says of those that are there: whether both are of one attribute, agree, or contradict."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ewe.longterm.records import Memory
from ewe.text.english import words_of
from ewe.text.words import fold, words
from ewe.verification.judges.protocol import REFUTED, SUPPORTED, Judge, checked

MOST_NEIGHBOURS = 16
"""At most so many memories are compared with a new one; the closest."""
LEAST_STRENGTH = 0.6
"""The judge's probability from which on a contradiction counts: it marks both sides, and moves neither."""
LEAST_AGREEMENT = 0.8
"""The one from which on two memories say the same: this moves a veracity."""
_MOST_VALUE_WORDS = 4
_SHORT = 12  # words; longer texts say several things
_LEAST_SHARED = 0.25
_SUBJECT_WORDS = 2

# Said of a change, and no part of what is said.
_NOW = re.compile(
    r"\b((?<!\bfor )now|nowadays|currently|any ?more|any longer|no longer|these days|after all|instead|"
    r"new(?= (?:\w+ )?(?:number|address|code|pin)\b))\b"
)
_NOT = re.compile(
    r"\b(?:(?:do|does)(?:n['’]t| not)|not|never|no longer|no(?![,.])|nobody|none|cannot|without|hardly)\b|n['’]t\b"
)


# What somebody or something has one of at a time.
_ONE_AT_A_TIME = words_of(
    """am is are live lives reside resides stay stays work works weigh weighs open opens close closes start starts begin
    begins end ends leave leaves arrive arrives cost costs prefer prefers earn earns runs belongs study studies"""
)
# With a number it is one at a time, too: two children, 5 mg.
_ONE_NUMBER = words_of("have has take takes need needs sleep sleeps contain contains")
# What can be said of many things at once.
_MANY = words_of(
    """like likes love loves enjoy enjoys speak speaks play plays know knows own owns read reads visited bought saw
    watched ate met went studied learned learnt tried made wrote have has had can want wants need needs use uses
    used drink drinks eat eats hate hates called took ordered collect collects sell sells serve serves"""
)
# Between "is" and the one value that there is; behind other words there ("is afraid of", "is learning") are many.
_BESIDE_ONE = words_of("in on at from by called named due now the")
# What a thing has one of, whatever it is: the words that name an attribute.
_ATTRIBUTE = words_of("favourite favorite name colour color age size height weight status job mood type of")
# These too, however many groups of digits it has: 0113 496 0001.
_ADDRESSES = words_of("number address code pin postcode iban")
_DIGIT = re.compile(r"\d")
_BE = words_of("am is are")
_ARTICLES = words_of("a an any")
_PREPOSITIONS = words_of("to of at with about for")
# Behind a statement they begin where, when or with whom it was.
_DETAILS = words_of("in on at to with for from since as by")
_FILLERS = words_of(
    "a an the i my we our you it is are am was were has have had do does in on at to of and for with from"
)
_VERBS = _ONE_AT_A_TIME | _MANY
_COMPARISON = words_of("than before after")
_NUMBERS = words_of("one two three four five six seven eight nine ten eleven twelve")
_FIRST_PERSON = words_of("i my me mine we our us ours")


@dataclass(frozen=True, slots=True)
class Relation:
    """How a memory that is there stands to a new text; all in [0, 1], probabilities of the judge.

    supports: that the memory entails the text; supported: that the text entails the memory; contradiction: that either
    rules out the other one (the greater of both directions; 0 where the words say that both can hold). Two values of
    one attribute never support each other, whatever a judge says.
    """

    memory: Memory
    supports: float
    supported: float
    contradiction: float

    @property
    def judgement(self) -> tuple[float, float, float]:
        """(entailment, contradiction, neutral) of the text by the memory, which sum to 1."""
        supports = min(self.supports, 1.0 - self.contradiction)
        # The sum of two floats can be above 1 by a rounding error.
        return supports, self.contradiction, max(0.0, 1.0 - supports - self.contradiction)


def relations(text: str, neighbours: Sequence[Memory], judge: Judge) -> list[Relation]:
    """One relation per neighbour, in order: the judge is asked once, for both directions of all. Raises JudgeError."""
    pairs = [(memory.content, text) for memory in neighbours] + [(text, memory.content) for memory in neighbours]
    rows = checked(judge.judge(pairs) if pairs else [], len(pairs), type(judge).__name__)
    there, back = rows[: len(neighbours)], rows[len(neighbours) :]
    against = [
        0.0 if can_both_hold(memory.content, text) else float(max(one[REFUTED], other[REFUTED]))
        for memory, one, other in zip(neighbours, there, back, strict=True)
    ]
    alike = [not same_attribute(memory.content, text) for memory in neighbours]
    return [
        Relation(memory, float(one[SUPPORTED]) * may, float(other[SUPPORTED]) * may, contradiction)
        for memory, one, other, contradiction, may in zip(neighbours, there, back, against, alike, strict=True)
    ]


def contradicted(related: Sequence[Relation]) -> list[Memory]:
    """The memories that the text surely contradicts, the surest first."""
    strong = [relation for relation in related if relation.contradiction >= LEAST_STRENGTH]
    return [relation.memory for relation in sorted(strong, key=lambda relation: -relation.contradiction)]


def agreeing(related: Sequence[Relation]) -> list[Memory]:
    """The memories that say what the text says: each surely entails the other."""
    return [one.memory for one in related if min(one.supports, one.supported) >= LEAST_AGREEMENT > one.contradiction]


def is_personal(text: str) -> bool:
    """Whether it says something of its own speaker, so that it is another fact in another mouth."""
    return not _FIRST_PERSON.isdisjoint(words(text))


def same_attribute(older: str, newer: str) -> bool:
    """Whether both give one attribute of one subject, of which there is one value at a time, and the values differ.

    "I live in Berlin" and "I live in Paris" do; they are alike but for one stretch of at most four words behind a verb
    that takes one value at a time, or one is the other with a "not", or compares the same two the other way round.
    """
    (one, no), (other, not_other) = _parts(older), _parts(newer)
    if no != not_other:  # "I have a car", "I have no car"
        return [word for word in one if word not in _ARTICLES] == [word for word in other if word not in _ARTICLES]
    if _are_exchanged(one, other):
        return True
    before = _shared(one, other)
    behind = _shared(one[before:][::-1], other[before:][::-1])
    values = (one[before : len(one) - behind], other[before : len(other) - behind])
    if not before or not all(0 < len(value) <= _MOST_VALUE_WORDS for value in values):
        return False
    if _NOW.search(fold(newer)) and before > 1:
        # What somebody is doing now stands beside what they are: fond of music, and learning German.
        return one[before - 1] not in _BE or not any(value[0].endswith("ing") for value in values)
    verbs = [place for place in range(1, before) if one[place] in _ONE_AT_A_TIME]
    if verbs:
        return one[verbs[-1]] not in _BE or _is_one(one[: verbs[-1]], one[verbs[-1] + 1 : before], values)
    return any(word in _ONE_NUMBER for word in one[:before]) and all(_is_number(value[0]) for value in values)


def _are_exchanged(one: list[str], other: list[str]) -> bool:
    """Whether both compare the same two, the other way round: "Ann is taller than Bo", "Bo is taller than Ann"."""
    kept = [[word for word in phrase if word not in _FILLERS] for phrase in (one, other)]
    behind = [next((after for word, after in pairwise(phrase) if word in _COMPARISON), "") for phrase in kept]
    return sorted(kept[0]) == sorted(kept[1]) and behind[0] != behind[1]


def _is_one(subject: list[str], between: list[str], values: tuple[list[str], list[str]]) -> bool:
    """Whether of what somebody or something "is" there is but one: not of trades, qualities and likings."""
    if between[-1:] in (["a"], ["an"]) or any(map(_is_a_kind, values)):
        return False  # a teacher can be a father as well
    if not _ADDRESSES.isdisjoint(subject) and all(_DIGIT.search(" ".join(value)) for value in values):
        return True
    if between:
        return _BESIDE_ONE.issuperset(between)
    return not _ATTRIBUTE.isdisjoint(subject) or all(_is_number(value[0]) for value in values)


def can_both_hold(one: str, other: str) -> bool:
    """Whether the words say so: of two people or things, of two things that somebody liked, visited or is afraid of, of
    a statement without a detail of the other one ("Ann moved to Lyon", "Ann moved to Lyon in 2019"), or of short
    statements that share less than a quarter of their words and none that matters.

    Judges of entailment take such pairs for contradictions.
    """
    (first, no), (second, not_second) = _parts(one), _parts(other)
    if no != not_second or not first or not second or same_attribute(one, other):
        return False
    if _adds_detail(*sorted((first, second), key=len)):
        return True
    if max(len(first), len(second)) <= _SHORT:
        shared = set(first) & set(second)
        if len(shared) < _LEAST_SHARED * len(set(first) | set(second)) and shared <= _FILLERS:
            return True
    (subject, verb), (other_subject, other_verb) = _head(first), _head(second)
    if subject != other_subject:
        if verb and verb == other_verb and len(subject) == len(other_subject):
            return sum(left != right for left, right in zip(subject, other_subject, strict=True)) == 1
        apart = not (set(subject) & set(second) or set(other_subject) & set(first))
        return apart and (subject[0] in _FIRST_PERSON or other_subject[0] in _FIRST_PERSON)
    if verb == other_verb and verb in _BE:
        return _are_two_qualities(first[len(subject) + 1 :], second[len(subject) + 1 :])
    if verb == other_verb:
        return verb in _MANY
    return {verb, other_verb} <= _ONE_AT_A_TIME - _BE


def _adds_detail(short: list[str], long: list[str]) -> bool:
    """Whether the longer one goes on where the shorter one ends."""
    return 1 < _shared(short, long) == len(short) < len(long) and long[len(short)] in _DETAILS


def _are_two_qualities(one: list[str], other: list[str]) -> bool:
    """Whether what stands behind "is" can be true of one thing: afraid of both, learning both; red, a car."""
    begin = one[: _shared(one, other)]
    if begin:
        return (begin[-1] in _PREPOSITIONS and len(begin) > 1) or begin[0].endswith("ing")
    return _is_a_kind(one) != _is_a_kind(other)


def _head(phrase: list[str]) -> tuple[list[str], str]:
    """The words before the first verb that is known, and the verb; without one the first words."""
    place = next((place for place, word in enumerate(phrase) if place and word in _VERBS), None)
    if place is None:
        return phrase[: 1 if phrase[0] in ("i", "we") else _SUBJECT_WORDS], ""
    return phrase[:place], phrase[place]


def _parts(text: str) -> tuple[list[str], bool]:
    """The words of a statement without "now" and "not", and whether it says "not"."""
    folded = fold(text)
    negated = _NOT.search(folded) is not None
    return words(_NOW.sub(" ", _NOT.sub(" ", folded))), negated


def _shared(one: list[str], other: list[str]) -> int:
    """How many words both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def _is_a_kind(value: list[str]) -> bool:
    """Whether it reads "a Volvo"; a blood group can be A."""
    return len(value) > 1 and value[0] in ("a", "an")


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word in _NUMBERS
