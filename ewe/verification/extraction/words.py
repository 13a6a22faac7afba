"""A sentence as words with what each of them can do, names, dates and quotations each being one word.

Owns: `Word`, `Tag`, and what a word can do by itself. Knows tokens, mentions, verbs and the word lists; no clauses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ewe.verification.extract import find_mentions
from ewe.verification.extraction import verbs
from ewe.verification.extraction.lists import (
    ADVERBS,
    CONJUNCTIONS,
    DETERMINERS,
    MODALS,
    NEGATIONS,
    NO_PARTICIPLES,
    NOT_NAMES,
    POSSESSIVES,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    SUBORDINATORS,
)
from ewe.verification.tokens import Token, tokenize
from ewe.verification.values import Moment, Name
from ewe.verification.wordlists import words_of


class Tag(StrEnum):
    """What a word can do; NOUN stands for every word of no other tag (adjectives too)."""

    NAME = "name"
    QUOTE = "quotation"
    DATE = "date"
    NUMBER = "number"
    NOUN = "noun"
    ADVERB = "adverb"
    DETERMINER = "determiner"
    POSSESSIVE = "possessive"
    PRONOUN = "pronoun"
    PREPOSITION = "preposition"
    TO = "to"
    AND = "conjunction"
    COMMA = "comma"
    OPEN = "opening bracket"
    CLOSE = "closing bracket"
    MARK = "mark"
    RELATIVE = "relative"
    SUBORDINATOR = "subordinator"
    BE = "be"
    HAVE = "have"
    DO = "do"
    MODAL = "modal"
    NOT = "negation"
    PAST = "past tense"
    ED = "past tense or participle"
    PARTICIPLE = "participle"
    ING = "-ing form"
    THIRD = "third person"
    BASE = "base form"


@dataclass(frozen=True, slots=True)
class Word:
    """One word; start and end are code points of the sentence, -1 for a word that was put in.

    own: whether the claim states it itself, or borrows it from another clause (a shared subject). possessive: it ends
    in "'s". text is as in the sentence; a quotation loses the comma or full stop before its closing mark.
    """

    text: str
    norm: str
    tag: Tag
    start: int = -1
    end: int = -1
    own: bool = True
    possessive: bool = False

    def borrowed(self) -> Word:
        """The same word for another clause."""
        return replace(self, own=False)


def put_in(text: str, tag: Tag) -> Word:
    """A word that is not in the sentence."""
    return Word(text, text.lower(), tag, own=False)


_BE = words_of("am is are was were be been being isn't aren't wasn't weren't")
_HAVE = words_of("have has had having haven't hasn't hadn't")
_DO = words_of("do does did don't doesn't didn't")
_CLOSED = (
    (PRONOUNS, Tag.PRONOUN),
    (POSSESSIVES, Tag.POSSESSIVE),
    (_BE, Tag.BE),
    (_HAVE, Tag.HAVE),
    (_DO, Tag.DO),
    (MODALS, Tag.MODAL),
    (NEGATIONS, Tag.NOT),
    (RELATIVES, Tag.RELATIVE),
    (frozenset({"to"}), Tag.TO),
    (CONJUNCTIONS, Tag.AND),
    (SUBORDINATORS, Tag.SUBORDINATOR),
    (DETERMINERS, Tag.DETERMINER),
    (PREPOSITIONS, Tag.PREPOSITION),
    (ADVERBS, Tag.ADVERB),
)
_TAG_OF = {word: tag for words, tag in reversed(_CLOSED) for word in words}
_MARKS = dict.fromkeys("$£€%#°&", Tag.NUMBER) | {
    ",": Tag.COMMA,
    "(": Tag.OPEN,
    "[": Tag.OPEN,
    ")": Tag.CLOSE,
    "]": Tag.CLOSE,
}
_QUOTE_END = re.compile(r"[,.;:]+(?=[\"”’'*_]+$)")
_NO_ADVERB = words_of("family only early assembly july italy supply reply anomaly elderly friendly daily")


def single_words(sentence: str) -> list[Word]:
    """The words of a sentence in order, without its closing punctuation, none joined yet; never raises."""
    tokens = tokenize(sentence)
    atoms: dict[int, tuple[int, Tag]] = {}
    for mention in find_mentions(sentence, tokens):
        tag = Tag.DATE if isinstance(mention.value, Moment) else Tag.NAME
        if tag is Tag.NAME and not isinstance(mention.value, Name):
            continue
        if tokens[mention.first].text[0] in '"“‘*_':
            tag = Tag.QUOTE
        elif tag is Tag.NAME and not _is_name(tokens, mention.first, mention.last):
            continue
        atoms[mention.first] = (mention.last, tag)
    words: list[Word] = []
    index = 0
    while index < len(tokens):
        initials = (index + 1, Tag.NAME) if tokens[index].kind == "initials" else None
        atom = atoms.get(index, initials)
        words.extend(_atom(sentence, tokens[index : atom[0]], atom[1]) if atom else [_single(tokens[index])])
        index = atom[0] if atom else index + 1
    while words and words[-1].tag is Tag.MARK and words[-1].text in ".!?…;:":
        words.pop()
    return words


def _is_name(tokens: Sequence[Token], first: int, last: int) -> bool:
    """Whether a mention is a name and not just the capital of an ordinary first word."""
    opens = not any(token.is_word for token in tokens[:first])
    word = tokens[first]
    if not opens or last - first > 1:
        return True
    listed = word.norm in NOT_NAMES or word.norm in _TAG_OF or word.norm in verbs.BY_ING or word.norm in verbs.BY_PAST
    return not (listed or word.norm in verbs.BY_PARTICIPLE)


def _atom(sentence: str, tokens: Sequence[Token], tag: Tag) -> list[Word]:
    """A name, date or quotation as one word, a comma behind it if it held one before its closing mark."""
    start, end = tokens[0].start, tokens[-1].end
    text = sentence[start:end]
    inner = _QUOTE_END.search(text) if tag is Tag.QUOTE else None
    shown = text[: inner.start()] + text[inner.end() :] if inner else text
    word = Word(shown, " ".join(token.norm for token in tokens), tag, start, end, possessive=tokens[-1].possessive)
    if inner and "," in inner.group():
        return [word, Word(",", ",", Tag.COMMA, end, end)]
    return [word]


def _single(token: Token) -> Word:
    return Word(token.text, token.norm, _tag(token), token.start, token.end, possessive=token.possessive)


def _tag(token: Token) -> Tag:
    """What a single token can do, by itself."""
    if token.kind == "mark":
        return _MARKS.get(token.text, Tag.MARK)
    if token.kind == "number":
        return Tag.NUMBER
    norm = token.norm
    if token.possessive:
        return Tag.NOUN
    if norm in _TAG_OF:
        return _TAG_OF[norm]
    if token.is_capital and token.text[1:].lower() != token.text[1:]:
        return Tag.NAME
    if norm in verbs.BY_PAST or norm in verbs.BY_PARTICIPLE:
        past, participle = norm in verbs.BY_PAST, norm in verbs.BY_PARTICIPLE
        return Tag.ED if past and participle else Tag.PAST if past else Tag.PARTICIPLE
    if norm in verbs.BY_ING:
        return Tag.ING
    if norm in verbs.BY_THIRD:
        return Tag.THIRD
    if norm in verbs.VERBS:
        return Tag.BASE
    if "-" in norm and not norm.startswith(("co-", "re-")):
        return Tag.NOUN
    if norm.endswith("ed") and len(norm) > 4 and norm not in NO_PARTICIPLES and not norm.endswith("eed"):
        return Tag.ED
    if norm.endswith("ly") and len(norm) > 4 and norm not in _NO_ADVERB:
        return Tag.ADVERB
    return Tag.NOUN
