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
from ewe.verification.extraction.clauses import Kind
from ewe.verification.extraction.lists import GROUPS
from ewe.verification.extraction.statements import Statement, read_statements
from ewe.verification.extraction.words import Tag, Word
from ewe.verification.lexicon import KIND_OF_NOUN, NameKind
from ewe.verification.names import find_name
from ewe.verification.tokens import tokenize
from ewe.verification.values import Name
from ewe.verification.wordlists import PERSONAL

_LOOKBACK = 6  # Sentences of the answer that are read again for the subject at hand.
_LOOKBACK_CHARACTERS = 4000
_NAMED = (Tag.NAME, Tag.QUOTE)


class Context:
    """What the text before a sentence told: names, the subject at hand, and which nouns it used for which name.

    The one that the prompt asks about is "he" or "she" until a sentence is about another full name; "it" is the last
    subject that was no person.
    """

    def __init__(self, request: VerificationRequest, splitter: SentenceSplitter) -> None:
        self._discourse = Discourse()
        self._nouns: dict[str, str] = {}
        self._person = self._thing = ""
        for text in (request.prompt[-_LOOKBACK_CHARACTERS:], request.preceding[-_LOOKBACK_CHARACTERS:]):
            for start, end in splitter.split(text)[-_LOOKBACK:]:
                parse_frames(text[start:end], self._discourse)
                words, statements = read_statements(text[start:end])
                self._learn_names(words)
                for statement in statements:
                    self.observe(statement)
            self._discourse.focus = self._discourse.focus or self._discourse.first
            focus = self._discourse.focus
            self._person = self._person or (focus.text if focus is not None else "")

    def observe(self, statement: Statement) -> None:
        """Notes the subject of a main clause and what the statement says it is."""
        subject = statement.subject
        if not subject:
            return
        single = subject[0] if len(subject) == 1 else None
        name = self.full(single.text) if single is not None and single.tag in _NAMED else ""
        if single is not None and single.tag is Tag.PRONOUN:
            name = self.referent(single.norm)
        elif statement.kind is Kind.MAIN and not name:
            self._thing = _phrase(subject, self._person)
        elif statement.kind is Kind.MAIN and name != self._person:
            if single is not None and single.tag is Tag.NAME and " " in name and not _is_group(name):
                self._person = name
            else:
                self._thing = name
        noun = _head(statement.rest) if statement.copular and statement.rest else ""
        if noun and name:
            self._nouns[noun] = name

    def referent(self, pronoun: str) -> str:
        """The name, or the phrase, that a folded pronoun stands for; empty if nothing is known."""
        if pronoun in PERSONAL:
            return self._person
        if pronoun in ("they", "their"):
            return self._thing if self._thing.endswith("s") else self._person
        return self._thing or self._person

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

    def definite(self, noun: str, before: Sequence[Word]) -> str:
        """The name that "the <noun>" takes up: in the words of the sentence before it, or in the text; else empty."""
        if noun in GROUPS:
            taken = _groups_in(before)
            if taken:
                return taken[-1]
        if noun in self._nouns:
            return self._nouns[noun]
        known = self._discourse.definite(noun)
        return known.text if known is not None and noun in known.words else ""

    def _learn_names(self, words: Sequence[Word]) -> None:
        """Notes "the rock band X"."""
        for left, right in pairwise(words):
            if left.tag is Tag.NOUN and right.tag in _NAMED and not right.possessive and not left.possessive:
                self._nouns[left.norm] = right.text


def _groups_in(words: Sequence[Word]) -> list[str]:
    """The names that a preposition or a verb governs and that may be groups ("for Ulm FC", "joined Ulm FC")."""
    found = []
    for at in range(1, len(words)):
        article = at > 1 and words[at - 1].norm == "the"
        before = words[at - 2] if article else words[at - 1]
        governed = before.tag in (Tag.ED, Tag.PAST, Tag.TO)
        governed |= before.tag is Tag.PREPOSITION and before.norm not in ("in", "on")
        if words[at].tag is Tag.NAME and not words[at].possessive and governed:
            found.append(f"the {words[at].text}" if article else words[at].text)
    return found


def _is_group(name: str) -> bool:
    """Whether a word of a name says that it is no person ("Ulm University")."""
    kinds = {KIND_OF_NOUN.get(word.lower(), NameKind.PERSON) for word in name.split()}
    return kinds != {NameKind.PERSON} or name.lower().startswith("the ")


def _phrase(subject: Sequence[Word], person: str) -> str:
    """A subject of several words as "it" may take it up: "his works" and "the works of X" with the owner's name."""
    if subject[0].norm in ("a", "an", "some", "many", "several") or any(word.tag is Tag.COMMA for word in subject):
        return ""
    text = " ".join(word.text for word in subject)
    if subject[0].tag is not Tag.POSSESSIVE:
        return text[:1].lower() + text[1:] if subject[0].norm in ("the", "this") else text
    return f"{person}'s {' '.join(word.text for word in subject[1:])}" if person else ""


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
