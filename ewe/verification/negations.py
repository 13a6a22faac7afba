"""What the negations of a text are of: "not by your doctor" is of "doctor", "not covered" of "covered"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache

from ewe.text.english import FUNCTION_WORDS, PREPOSITIONS, normal_form, words_of
from ewe.verification.sentence_words import WORD

NEGATIONS = words_of("not no never none neither nor without cannot nobody nothing")
_CLAUSE_END = re.compile(r"[,;:.!?](?=\s|$)|[()–—]")
_ENDS = words_of("but although though because while whereas instead")
_CONDITIONS = words_of("if unless when until where provided")
_EXCLUDING = PREPOSITIONS - {"by"}
_CACHED_TEXTS = 8192


@dataclass(frozen=True, slots=True)
class Negation:
    """first: the stem of the content word that is negated, or "". words: the stems up to the end of its clause.

    is_aside: whether what stands outside `words` may be said without it ("proposed, but never built"); what is said
    on a condition or with an exception may not ("if no one objects", "but not on Mondays").
    """

    first: str
    words: Set[str]
    is_aside: bool


@lru_cache(maxsize=_CACHED_TEXTS)
def negations_of(text: str) -> tuple[Negation, ...]:
    """The negations of a text in order; "neither Ada nor Bo" is one."""
    return tuple(one for clause in _clauses(text) for one in _of_clause(clause))


def negates_another(claim: str, evidence: str) -> bool:
    """Whether a word that one of them negates stands in the other without its negation.

    "By your doctor, not by the nurse" does on "by the nurse, not by your doctor".
    """
    return _affirms(claim, evidence) or _affirms(evidence, claim)


def _affirms(text: str, other: str) -> bool:
    """Whether the text has only without a negation what the other has only with one."""
    negated = frozenset[str]().union(*(one.words for one in negations_of(text)))
    first = {one.first for one in negations_of(other)}
    return not first.isdisjoint(_outside(text) - negated - _outside(other))


@lru_cache(maxsize=_CACHED_TEXTS)
def _outside(text: str) -> frozenset[str]:
    """The stems of the words that no negation stands before in their clause."""
    stems = set()
    for clause in _clauses(text):
        first = next((at for at, word in enumerate(clause) if is_negation(word)), len(clause))
        end = next((at for at in range(first, len(clause)) if clause[at] in _ENDS), len(clause))
        stems |= {normal_form(word) for word in clause[:first] + clause[end:]}
    return frozenset(stems)


def is_negation(low: str) -> bool:
    """Whether a folded word negates."""
    return low in NEGATIONS or low.endswith(("n't", "n’t"))


def _clauses(text: str) -> Iterator[list[str]]:
    """The folded words of each clause."""
    return ([match[0].lower() for match in WORD.finditer(clause)] for clause in _CLAUSE_END.split(text))


def _of_clause(low: list[str]) -> Iterator[Negation]:
    for at, word in enumerate(low):
        if not is_negation(word) or (word == "nor" and any(map(is_negation, low[:at]))):
            continue
        end = next((place for place in range(at + 1, len(low)) if low[place] in _ENDS), len(low))
        stems = [normal_form(one) for one in low[at + 1 : end] if one not in FUNCTION_WORDS and not is_negation(one)]
        is_limit = word == "without" or (word == "not" and low[at - 1 : at] == ["but"])
        is_limit = is_limit or not _EXCLUDING.isdisjoint(low[at + 1 : at + 2])
        is_limit = is_limit or not PREPOSITIONS.isdisjoint(low[at - 1 : at])
        is_aside = bool(stems) and not is_limit and _CONDITIONS.isdisjoint(low[:at])
        yield Negation(stems[0] if stems else "", frozenset(stems), is_aside)
