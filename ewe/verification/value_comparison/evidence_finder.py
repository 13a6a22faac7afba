"""Evidence for claims: passages found with the claim as query, read into statements once each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from ewe.protocols import Retriever
from ewe.text.sentences import SentenceSplitter
from ewe.text.words import words
from ewe.types import Passage
from ewe.verification.value_comparison.claims import ParsedClaim
from ewe.verification.value_comparison.clauses import Clause
from ewe.verification.value_comparison.coreference import Discourse
from ewe.verification.value_comparison.lexicon import WORDS_OF_RELATION
from ewe.verification.value_comparison.mentions import find_mentions
from ewe.verification.value_comparison.statements import read_statements
from ewe.verification.value_comparison.tokens import tokenize
from ewe.verification.value_comparison.values import Agreement, Name, compare

_MAX_LEAD = 2  # Sentences before the deciding one that an excerpt may take along.
_CACHED_PASSAGES = 4096
_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """One sentence of a passage with its statements; text begins earlier where it alone would not name its subject."""

    text: str
    statements: tuple[Clause, ...]


class EvidenceFinder:
    """Finds the passages for claims, all claims of a batch in one call of the retriever.

    Each claim is asked for three times: in its own words; by its subject and all words that speak of its relation, so
    that evidence with another value is found; and by its subject alone, for evidence in other words.
    """

    def __init__(self, retriever: Retriever, top_k: int, splitter: SentenceSplitter) -> None:
        self._retriever = retriever
        self._top_k = top_k
        self.read = lru_cache(maxsize=_CACHED_PASSAGES)(partial(read_sentences, splitter=splitter))

    def find(self, claims: Sequence[ParsedClaim]) -> list[list[Passage]]:
        """Per claim its passages, best first, without repetitions; passages of veracity 0 are left out."""
        queries = [[claim.claim.text, *_subject_queries(claim.statement)] for claim in claims]
        unique = list(dict.fromkeys(query for group in queries for query in group))
        if not unique:
            return [[] for _ in claims]
        found = dict(zip(unique, self._retriever.retrieve(unique, self._top_k), strict=True))
        results = []
        for group in queries:
            passages = {scored.passage.id: scored.passage for query in group for scored in found[query]}
            results.append([passage for passage in passages.values() if passage.veracity > 0])
        return results


def read_sentences(passage: Passage, splitter: SentenceSplitter) -> tuple[ReadSentence, ...]:
    """The sentences of a passage; its title is what its pronouns mean until a sentence has another subject."""
    title = title_name(passage.title)
    discourse = Discourse(title)
    spans = splitter.split(passage.text)
    sentences = []
    for index, (start, end) in enumerate(spans):
        statements = tuple(read_statements(passage.text[start:end], discourse))
        first = _first_needed(passage.text, spans, index, statements, title)
        sentences.append(ReadSentence(passage.text[spans[first][0] : end], statements))
    return tuple(sentences)


def _first_needed(
    text: str, spans: Sequence[tuple[int, int]], index: int, statements: Sequence[Clause], title: Name | None
) -> int:
    """Index of the sentence from which on sentence `index` says of whom it speaks, under the passage's title."""
    subjects = [statement.subject for statement in statements if statement.subject is not None]
    unnamed = [name for name in subjects if title is None or compare(name, title) is not Agreement.EQUAL]
    end = spans[index][1]
    for first in range(index, max(-1, index - _MAX_LEAD - 1), -1):
        told = set(words(text[spans[first][0] : end]))
        if all(name.words[-1] in told for name in unnamed):
            return first
    return index


def title_name(title: str) -> Name | None:
    """What a title names: its first proper name, or all of its words; None for an empty title."""
    bare = _BRACKETS.sub("", title).strip()
    tokens = tokenize(bare)
    mentions = [mention.value for mention in find_mentions(bare, tokens) if isinstance(mention.value, Name)]
    words = tuple(token.norm for token in tokens if token.kind != "mark" and token.norm not in ("the", "of", "a", "an"))
    if len(mentions) == 1:
        return Name(mentions[0].words, mentions[0].kind, bare)
    return Name(words, text=bare) if words else None


def _subject_queries(statement: Clause) -> Iterator[str]:
    if statement.subject is not None:
        subject = statement.subject.text or " ".join(statement.subject.words)
        relations = (WORDS_OF_RELATION.get(name, name.strip("~")) for name in sorted(statement.relations))
        yield " ".join([subject, *relations])
        yield subject
