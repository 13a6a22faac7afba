"""Verb groups: auxiliaries, adverbs and the verb they belong to.

Owns: which words are verbs where they stand ("plays" in "he plays" and in "two plays"). Knows words; no clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ewe.verification.extraction.lists import GERUND_OPENERS, KNOWN_FOR
from ewe.verification.extraction.words import Tag, Word


@dataclass(slots=True)
class VerbGroup:
    """[first, last) with adverbs before it; head is the main verb. finite: it can carry a clause by itself.

    may_be_finite: a past form that is a participle elsewhere ("signed"), or finite anyway.
    """

    first: int
    head: int
    last: int
    finite: bool
    may_be_finite: bool


_AUXILIARIES = (Tag.MODAL, Tag.BE, Tag.HAVE, Tag.DO)
_BETWEEN = (Tag.ADVERB, Tag.NOT)
_ATTRIBUTIVE = (Tag.DETERMINER, Tag.POSSESSIVE, Tag.NUMBER)
_OBJECTS = (
    Tag.DETERMINER, Tag.PREPOSITION, Tag.NAME, Tag.POSSESSIVE, Tag.QUOTE, Tag.NUMBER, Tag.ADVERB, Tag.TO, Tag.DATE,
    Tag.PRONOUN, Tag.SUBORDINATOR,
)  # fmt: skip
_NAMING = frozenset({"called", "named", "titled", "entitled", "dubbed", "nicknamed", "known", "starring", "featuring"})


def next_group(words: Sequence[Word], index: int, finite: Word | None) -> tuple[VerbGroup | None, int]:
    """The verb group that begins at `index`, or None and where to look next.

    finite: the finite verb that the clause has already, so that a further form is rather a noun or a participle.
    """
    has_finite = finite is not None
    tag = words[index].tag
    before = _before(words, index)
    if before is not None and words[before].tag is Tag.TO and tag in (Tag.BASE, *_AUXILIARIES):
        return None, _after_infinitive(words, index)
    if tag in _AUXILIARIES:
        return _with_auxiliaries(words, index), index + 1
    if tag in (Tag.PAST, Tag.ED, Tag.PARTICIPLE):
        return _past(words, index, before, has_finite), index + 1
    if tag is Tag.ING:
        return _ing(words, index, before), index + 1
    if tag in (Tag.THIRD, Tag.BASE) and _is_present(words, index, before, finite):
        return _group(words, index, index, index + 1, finite=True), index + 1
    return None, index + 1


def is_subordinating(words: Sequence[Word], at: int, verb: int) -> bool:
    """Whether a word like "after" opens the clause of the verb at `verb`: a subject is all that stands between."""
    between = words[at + 1 : verb]
    if not between or any(word.tag is Tag.COMMA for word in between):
        return False
    return between[0].tag not in (Tag.DATE, Tag.ING, Tag.NUMBER, Tag.ADVERB)


def _group(
    words: Sequence[Word], index: int, head: int, last: int, finite: bool, may_be: bool | None = None
) -> VerbGroup:
    first = index
    while first > 0 and words[first - 1].tag in _BETWEEN:
        first -= 1
    return VerbGroup(first, head, last, finite, finite if may_be is None else may_be)


def _before(words: Sequence[Word], index: int) -> int | None:
    """Index of the last word before `index` that is no adverb or negation."""
    at = index - 1
    while at >= 0 and words[at].tag in _BETWEEN:
        at -= 1
    return at if at >= 0 else None


def _after_infinitive(words: Sequence[Word], index: int) -> int:
    """The first index behind the verbs of an infinitive ("to have been made")."""
    while index < len(words) and words[index].tag in (*_AUXILIARIES, *_BETWEEN):
        index += 1
    verbal = (Tag.ED, Tag.PARTICIPLE, Tag.BASE, Tag.ING)
    return index + 1 if index < len(words) and words[index].tag in verbal else max(index, 1)


def _with_auxiliaries(words: Sequence[Word], index: int) -> VerbGroup:
    at = last_auxiliary = index
    while at < len(words) and (words[at].tag in (*_AUXILIARIES, *_BETWEEN) or _is_inner_since(words, at)):
        if words[at].tag in _AUXILIARIES:
            last_auxiliary = at
        at += 1
    finite = words[index].norm not in ("being", "having", "been", "be")
    tag = words[at].tag if at < len(words) else None
    auxiliary = words[last_auxiliary].tag
    takes = {
        Tag.BE: (Tag.ED, Tag.PARTICIPLE, Tag.ING),
        Tag.HAVE: (Tag.ED, Tag.PARTICIPLE),
        Tag.MODAL: (Tag.BASE, Tag.NOUN, Tag.THIRD),
        Tag.DO: (Tag.BASE, Tag.NOUN),
    }[auxiliary]
    if tag in takes:
        return _group(words, index, at, at + 1, finite)
    return _group(words, index, last_auxiliary, last_auxiliary + 1, finite)


def _is_inner_since(words: Sequence[Word], at: int) -> bool:
    """Whether "since" stands between an auxiliary and its verb ("has since moved")."""
    return words[at].norm == "since" and at + 1 < len(words) and words[at + 1].tag in (Tag.ED, Tag.PARTICIPLE, Tag.BE)


def _past(words: Sequence[Word], index: int, before: int | None, has_finite: bool) -> VerbGroup | None:
    """A past tense or participle that is no adjective before a noun."""
    tag = words[index].tag
    follows = words[index + 1].tag if index + 1 < len(words) else None
    previous = words[before] if before is not None else None
    if previous is not None and previous.tag in (*_ATTRIBUTIVE, Tag.PREPOSITION):
        return None
    if previous is not None and previous.possessive:
        return None
    if tag is Tag.PAST:
        return _group(words, index, index, index + 1, finite=True)
    joined = previous is None or previous.tag in (Tag.COMMA, Tag.AND)
    described = follows in (Tag.NOUN, Tag.ED) and words[index].norm not in _NAMING
    if has_finite and described and not joined and not (previous is not None and previous.tag is Tag.PRONOUN):
        return None  # "an American retired footballer"
    subject = previous is not None and previous.norm in ("he", "she", "it", "they", "who", "which")
    carried = tag is Tag.ED and (subject or not has_finite) and previous is not None and not joined
    return _group(words, index, index, index + 1, finite=carried, may_be=tag is Tag.ED)


def _ing(words: Sequence[Word], index: int, before: int | None) -> VerbGroup | None:
    """An -ing form that is neither a noun nor governed by a preposition or a verb."""
    previous = words[before] if before is not None else None
    if previous is None or previous.tag is Tag.COMMA:
        if _is_noun_of_list(words, index + 1):
            return None
        return _group(words, index, index, index + 1, finite=False, may_be=False)
    known_for = previous.norm == "for" and any(word.norm in KNOWN_FOR for word in words[max(0, index - 3) : index])
    if previous.norm in GERUND_OPENERS or known_for:
        return _group(words, index, index, _last_of_passive(words, index), finite=False, may_be=False)
    follows = words[index + 1].tag if index + 1 < len(words) else None
    taken = previous.tag in (Tag.NOUN, Tag.NAME, Tag.CLOSE) and not previous.possessive
    if taken and _is_plural(previous):
        taken = follows in (Tag.DETERMINER, Tag.NAME, Tag.POSSESSIVE, Tag.PREPOSITION, Tag.QUOTE)
    elif taken:
        taken = follows in (Tag.DETERMINER, Tag.NAME, Tag.POSSESSIVE, Tag.QUOTE) or words[index].norm == "being"
    if taken or previous.tag is Tag.AND:
        return _group(words, index, index, index + 1, finite=False, may_be=False)
    return None


def _last_of_passive(words: Sequence[Word], index: int) -> int:
    """Where "being drafted" or "winning" ends."""
    passive = (
        words[index].norm == "being" and index + 1 < len(words) and words[index + 1].tag in (Tag.ED, Tag.PARTICIPLE)
    )
    return index + 1 + passive


def _is_noun_of_list(words: Sequence[Word], index: int) -> bool:
    """Whether a bare singular noun and a comma follow ("his pace, tackling ability, and range")."""
    if index >= len(words) or words[index].tag is not Tag.NOUN or _is_plural(words[index]):
        return False
    return index + 1 >= len(words) or words[index + 1].tag in (Tag.COMMA, Tag.AND)


def _is_plural(word: Word) -> bool:
    return word.tag is Tag.NAME or (word.norm.endswith("s") and not word.norm.endswith("ss"))


def _is_present(words: Sequence[Word], index: int, before: int | None, finite: Word | None) -> bool:
    """Whether a form that may be a noun is a verb in the present tense."""
    if before is None:
        return False
    previous, third = words[before], words[index].tag is Tag.THIRD
    follows = words[index + 1].tag if index + 1 < len(words) else None
    if previous.tag is Tag.RELATIVE:
        return True
    if previous.tag is Tag.PRONOUN:
        return previous.norm in (
            ("he", "she", "it", "this", "that") if third else ("they", "we", "i", "you", "these", "both")
        )
    if previous.possessive or follows not in _OBJECTS:
        return False
    if previous.tag is Tag.AND:
        return third and finite is not None and (finite.tag is Tag.THIRD or finite.norm in ("is", "does"))
    if finite is not None:
        return False
    if previous.tag in (Tag.NAME, Tag.QUOTE, Tag.CLOSE, Tag.COMMA):
        return third
    return previous.tag in (Tag.NOUN, Tag.BASE, Tag.THIRD, Tag.ING, Tag.ED) and _is_plural(previous) is not third
