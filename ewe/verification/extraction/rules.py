"""Claims by rules: every statement of a sentence as a sentence that stands alone.

Owns: `RuleClaims`, the way from a request to its claims. Knows all steps of it; no model, no evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ewe.text.sentences import SentenceSplitter
from ewe.types import Claim, VerificationRequest
from ewe.verification.extraction.checkable import is_checkable, is_sound, may_state, skip_remark
from ewe.verification.extraction.context import Context
from ewe.verification.extraction.expansion import expand
from ewe.verification.extraction.statements import Statement, read_statements
from ewe.verification.extraction.wording import resolve, span_of, spell
from ewe.verification.extraction.words import Tag, Word

_MAX_CLAIMS = 32
_MAX_CHARACTERS = 4000
_UNRESOLVED = ("he ", "she ", "it ", "they ", "his ", "her ", "its ", "their ")
_COVERED = 0.5  # Of a sentence's names, numbers, nouns and verbs; below, the whole sentence is a claim too.
_CONTENT = (Tag.NAME, Tag.QUOTE, Tag.DATE, Tag.NUMBER, Tag.NOUN, Tag.ED, Tag.PAST, Tag.ING, Tag.PARTICIPLE, Tag.THIRD)


class RuleClaims:
    """Finds the claims of English sentences without a model; satisfies `ClaimExtractor`.

    Clauses, shared subjects, relative clauses, participles, appositions, lists and examples become claims of their own;
    pronouns and short names are replaced from the prompt and the text before. Questions, opinions, remarks about the
    text and what speaks of "I" and "you" give none. Never raises on odd text.
    """

    def __init__(self) -> None:
        self._splitter = SentenceSplitter()

    def extract(self, requests: Sequence[VerificationRequest]) -> list[list[Claim]]:
        """The claims of each sentence in their order, without verdicts; spans are code points of the sentence."""
        return [self._claims(request) for request in requests]

    def _claims(self, request: VerificationRequest) -> list[Claim]:
        sentence = request.sentence[:_MAX_CHARACTERS]
        if not may_state(sentence):
            return []
        offset = skip_remark(sentence)
        words, statements = read_statements(sentence[offset:])
        context = Context(request, self._splitter)
        claims: dict[str, Claim] = {}
        for statement in _expanded(words, statements, context):
            resolved = resolve(statement, context, words)
            if not is_checkable(resolved, _subject_length(resolved)):
                continue
            span = span_of(statement)
            text = spell(resolved)
            if span is not None and span[0] < span[1]:
                claims.setdefault(text.casefold(), Claim(text, span[0] + offset, span[1] + offset))
        named = [claim for text, claim in claims.items() if not text.startswith(_UNRESOLVED)]
        return (named or list(claims.values()))[:_MAX_CLAIMS]


def _expanded(words: Sequence[Word], statements: Sequence[Statement], context: Context) -> Iterator[list[Word]]:
    """The sound statements of a sentence, in order; at last the whole sentence if they leave out half of it.

    `context` learns each subject when its statements have been given out.
    """
    found: list[list[Word]] = []
    for statement in statements:
        parts = [part for part in expand(statement) if is_sound(part)]
        yield from parts
        found += parts
        context.observe(statement)
    content = {word.start for word in words if word.tag in _CONTENT}
    covered = {word.start for part in found for word in part if word.tag in _CONTENT}
    imperative = bool(words) and words[0].tag is Tag.BASE
    if content and not imperative and len(content & covered) < _COVERED * len(content) and _has_verb(words):
        yield list(words)


def _has_verb(words: Sequence[Word]) -> bool:
    return any(word.tag in (Tag.BE, Tag.HAVE, Tag.PAST, Tag.ED, Tag.THIRD, Tag.MODAL, Tag.DO) for word in words)


def _subject_length(words: Sequence[Word]) -> int:
    """How many words stand before the first verb."""
    verbs = (Tag.BE, Tag.HAVE, Tag.DO, Tag.MODAL, Tag.PAST, Tag.ED, Tag.THIRD)
    return next((at for at, word in enumerate(words) if word.tag in verbs), 0)
