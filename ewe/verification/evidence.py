"""Evidence for claims: passages found with the claim as query, read into frames once each.

Owns: the queries and the reading of passages. Knows the Retriever protocol, frames and discourse; no verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ewe.protocols import Retriever
from ewe.text.sentences import SentenceSplitter
from ewe.types import Passage
from ewe.verification.claims import ParsedClaim
from ewe.verification.clauses import parse_frames
from ewe.verification.discourse import Discourse
from ewe.verification.extract import find_mentions
from ewe.verification.frames import Frame
from ewe.verification.tokens import tokenize
from ewe.verification.values import Name

_CACHED_PASSAGES = 4096
_BRACKETS = re.compile(r"\s*\([^)]*\)\s*$")


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """One sentence of a passage with its frames and all names in it."""

    text: str
    frames: tuple[Frame, ...]


class EvidenceFinder:
    """Finds the passages for claims, all claims of a batch in one call of the retriever.

    Each claim is asked for twice: in its own words, and by its subject alone, so that evidence in other words is found.
    """

    def __init__(self, retriever: Retriever, top_k: int, splitter: SentenceSplitter) -> None:
        self._retriever = retriever
        self._top_k = top_k
        self._splitter = splitter
        self.read = lru_cache(maxsize=_CACHED_PASSAGES)(self._read)

    def find(self, claims: Sequence[ParsedClaim]) -> list[list[Passage]]:
        """Per claim its passages, best first, without repetitions; passages of veracity 0 are left out."""
        queries = [[claim.claim.text, *_subject_query(claim.frame)] for claim in claims]
        unique = list(dict.fromkeys(query for group in queries for query in group))
        if not unique:
            return [[] for _ in claims]
        found = dict(zip(unique, self._retriever.retrieve(unique, self._top_k), strict=True))
        results = []
        for group in queries:
            passages = {scored.passage.id: scored.passage for query in group for scored in found[query]}
            results.append([passage for passage in passages.values() if passage.veracity > 0])
        return results

    def _read(self, passage: Passage) -> tuple[ReadSentence, ...]:
        """The sentences of a passage; its title is what its pronouns mean until a sentence has another subject."""
        discourse = Discourse(title_name(passage.title))
        return tuple(
            ReadSentence(passage.text[start:end], tuple(parse_frames(passage.text[start:end], discourse)))
            for start, end in self._splitter.split(passage.text)
        )


def title_name(title: str) -> Name | None:
    """What a title names: its first proper name, or all of its words; None for an empty title."""
    bare = _BRACKETS.sub("", title).strip()
    tokens = tokenize(bare)
    mentions = [mention.value for mention in find_mentions(bare, tokens) if isinstance(mention.value, Name)]
    words = tuple(token.norm for token in tokens if token.kind != "mark" and token.norm not in ("the", "of", "a", "an"))
    if len(mentions) == 1:
        return Name(mentions[0].words, mentions[0].kind, bare)
    return Name(words, text=bare) if words else None


def _subject_query(frame: Frame) -> Iterator[str]:
    if frame.subject is not None:
        yield frame.subject.text or " ".join(frame.subject.words)
