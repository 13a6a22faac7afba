"""Whom and what the words of a sentence mean, from the prompt and the text before it.

Owns: the way from pronouns, short names and "the band" to names. Knows the discourse of the value comparison, which
keeps the names and the subject at hand, and words and statements for what the text said a name is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ewe.text.sentences import SentenceSplitter
from ewe.types import VerificationRequest
from ewe.verification.clauses import parse_frames
from ewe.verification.discourse import Discourse
from ewe.verification.extraction.clauses import find_clauses
from ewe.verification.extraction.statements import StatementBuilder
from ewe.verification.extraction.words import Tag, Word, read_words
from ewe.verification.names import find_name
from ewe.verification.tokens import tokenize
from ewe.verification.values import Name

_LOOKBACK = 6  # Sentences of the answer that are read again for the subject at hand.
_LOOKBACK_CHARACTERS = 4000
_NAMED = (Tag.NAME, Tag.QUOTE)


class Context:
    """What the text before a sentence told: names, the subject at hand, and which nouns it used for which name."""

    def __init__(self, request: VerificationRequest, splitter: SentenceSplitter) -> None:
        self._discourse = Discourse()
        self._nouns: dict[str, str] = {}
        for text in (request.prompt[-_LOOKBACK_CHARACTERS:], request.preceding[-_LOOKBACK_CHARACTERS:]):
            for start, end in splitter.split(text)[-_LOOKBACK:]:
                parse_frames(text[start:end], self._discourse)
                self._learn_nouns(read_words(text[start:end]))
            self._discourse.focus = self._discourse.focus or self._discourse.first

    def referent(self, pronoun: str) -> str:
        """The name that a folded pronoun stands for; empty if none is known."""
        name = self._discourse.pronoun(pronoun)
        return name.text if name is not None else ""

    def full(self, short: str) -> str:
        """The longest form of a person's name met so far ("Marie Curie" for "Curie"), or `short` itself."""
        mention = find_name(tokenize(f"the {short}"), 1)
        if mention is None or not isinstance(mention.value, Name) or len(mention.value.words) != 1:
            return short
        known = self._discourse.full(mention.value)
        focus = self._discourse.focus
        if known.words == mention.value.words and focus is not None and set(known.words) <= set(focus.words):
            return focus.text  # one of several family names
        return known.text or short

    def definite(self, noun: str) -> str:
        """The name that the text has called a <noun> before; empty if none."""
        if noun in self._nouns:
            return self._nouns[noun]
        known = self._discourse.definite(noun)
        return known.text if known is not None and noun in known.words else ""

    def _learn_nouns(self, words: Sequence[Word]) -> None:
        """Notes "X is a rock band" and "the rock band X"."""
        for left, right in pairwise(words):
            if left.tag is Tag.NOUN and right.tag in _NAMED and not right.possessive and not left.possessive:
                self._nouns[left.norm] = right.text
        for statement in StatementBuilder(words, find_clauses(words)).build():
            if not (statement.copular and statement.subject and statement.rest):
                continue
            noun = _head(statement.rest)
            subject = statement.subject[0]
            name = subject.text if len(statement.subject) == 1 and subject.tag in _NAMED else ""
            if subject.tag is Tag.PRONOUN:
                name = self.referent(subject.norm)
            if noun and name:
                self._nouns[noun] = self.full(name)


def _head(words: Sequence[Word]) -> str:
    """The head noun of the noun phrase that begins here ("band" of "a Dutch rock band from Ulm")."""
    head = ""
    if words[0].norm not in ("a", "an", "the"):
        return head
    for word in words[1:]:
        if word.tag in (Tag.NOUN, Tag.BASE, Tag.THIRD):
            head = word.norm
        elif word.tag not in (Tag.NAME, Tag.ADVERB, Tag.ED, Tag.NUMBER):
            break
    return head
