"""Of what a relative clause speaks: "who had painted the hall" in "Ada met Bo, who had painted the hall"."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from ewe.text.english import FUNCTION_WORDS, PREPOSITIONS, PRONOUNS, words_of
from ewe.verification.sentence_words import SentenceWords, read_words

_RELATIVES = words_of("who which that")
_SUBJECTS = words_of("he she it they")
_COPULAS = words_of("is are was were became becomes remained remains")
_PLACES = PREPOSITIONS - {"of"}


@dataclass(frozen=True, slots=True)
class _Relative:
    """A relative clause: the places of its words, and the stems of what it may speak of; none if that is not plain."""

    places: range
    subject: Set[str]


def takes_from_a_relative_clause(claim: str, sentence: str) -> bool:
    """Whether a claim says of something else what the sentence says of the name or noun before a "who" or "which".

    "Ada had painted the hall" does on "Ada met Bo, who had painted the hall"; "Bo had painted the hall" does not.
    """
    claimed, own = read_words(claim), read_words(sentence)
    said = _content(claimed, range(len(claimed.low)))
    return any(_is_of_another(said, relative, own) for relative in _relatives(own))


def _is_of_another(said: Set[str], relative: _Relative, own: SentenceWords) -> bool:
    if not relative.subject or not said.isdisjoint(relative.subject):
        return False
    inside = _content(own, relative.places)
    around = _content(own, (at for at in range(len(own.low)) if at not in relative.places))
    return not said <= inside and not said.isdisjoint(inside - around)


def _relatives(own: SentenceWords) -> Iterator[_Relative]:
    for at, word in enumerate(own.low[:-1]):
        if at == 0 or word not in _RELATIVES:
            continue
        goes_on = own.is_verb[at + 1] or own.low[at + 1].endswith("ed")
        if word == "that" and (own.is_verb[at - 1] or not goes_on):
            continue  # "said that the tunnel is safe"
        end = min((place for place in own.breaks if place > at), default=len(own.low))
        yield _Relative(range(at + 1, end), _antecedent(own, at))


def _antecedent(own: SentenceWords, relative: int) -> Set[str]:
    """The stems of what stands before a relative pronoun, back to a verb; or back to the preposition behind that verb.

    "was a painter" has the subject of its "was" in it. Empty where a pronoun is meant.
    """
    near = relative - 1 if own.low[relative - 1] in PREPOSITIONS else relative
    at, cut = near, 0
    while at > 0 and not _is_verb(own, at - 1, near):
        at -= 1
        cut = cut or (at + 1 if own.low[at] in _PLACES else 0)
    is_copula = at > 0 and own.low[at - 1] in _COPULAS
    if at > 0 and not (is_copula and (not cut or relative not in own.breaks)):
        return _content(own, range(max(at, cut), near))
    return set() if not PRONOUNS.isdisjoint(own.low[:near]) else _content(own, range(near))


def _is_verb(own: SentenceWords, at: int, end: int) -> bool:
    """Whether a word is a verb, by itself, behind "it", or before the name that ends there ("succeeds Lucy Marsh")."""
    if own.is_verb[at] or (at > 0 and own.low[at - 1] in _SUBJECTS):
        return True
    begins = next((stop - len(name) for stop, name in own.names if stop == end), 0)
    return at + 1 == begins and at + 1 not in own.breaks and own.low[at] not in FUNCTION_WORDS


def _content(text: SentenceWords, places: Iterator[int] | range) -> Set[str]:
    """The stems of the words at these places that are not function words."""
    return {text.stems[at] for at in places if text.low[at] not in FUNCTION_WORDS}
