"""Looking for memories by words and by meaning at once, within the scopes that the asker may see.

Owns: how the two searches are put together, and a memory as a passage. Knows the store, the fusion of ranks and the
encoder's protocol; no scoring of memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote

from ewe.errors import InvalidRequestError
from ewe.longterm.records import Memory, Scope
from ewe.longterm.store.reading import MemoryReader
from ewe.retrieval.encoders import Encoder
from ewe.retrieval.hybrid import LEXICAL_AND_DENSE, fuse
from ewe.types import Passage, ScoredPassage

_DEPTH = 50
# All-MiniLM-L6-v2 gives unrelated texts cosines of about 0.2 at most.
LEAST_COSINE = 0.25


@dataclass(frozen=True, slots=True)
class Found:
    """A memory with the score of the search (higher is better; see `MemorySearch` for the scale)."""

    memory: Memory
    score: float


class MemorySearch:
    """Searches a store by words (BM25) and, with an encoder, by meaning too, the two joined by reciprocal ranks.

    Scores are BM25's without an encoder, else those of `ewe.retrieval.hybrid.fuse`; comparable within one search.
    least_cosine: what a memory's vector needs to be found by it (unit vectors; of all-MiniLM-L6-v2 unless changed), so
    that a question about something else finds nothing by meaning. Memories without a vector are found by their words.
    Safe to call from several threads. Raises ConfigError if another encoder made the store's vectors.
    """

    def __init__(self, store: MemoryReader, encoder: Encoder | None = None, least_cosine: float = LEAST_COSINE) -> None:
        self._store, self._encoder, self._least = store, encoder, least_cosine
        self.description = "BM25"
        if encoder is not None:
            store.embeddings.check(encoder)
            self.description = f"hybrid: BM25 + {encoder.name.rsplit('/', 1)[-1]}"

    def search(
        self, queries: Sequence[str], scopes: Sequence[Scope], top_k: int, as_of: float | None = None
    ) -> list[list[Found]]:
        """Per query, at most `top_k` memories of exactly these scopes, best first; as_of: those that hold at that time.

        Nothing in other scopes has any part in it: neither in what is found nor in its score. Raises ValueError if
        top_k < 1.
        """
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {top_k}")
        numbers = self._store.scope_numbers(scopes)
        depth = max(_DEPTH, 2 * top_k)  # some of what is found may not hold any more
        rankings = [[self._store.lexicon.search(query, numbers, depth) for query in queries]]
        if self._encoder is not None and queries:
            vectors = self._encoder.encode_queries(queries)
            found = [self._store.embeddings.search(vector, numbers, depth) for vector in vectors]
            rankings.append([[hit for hit in row if hit[1] >= self._least] for row in found])
        return [self._joined(row, scopes, top_k, as_of) for row in zip(*rankings, strict=True)]

    def _joined(
        self,
        rankings: Sequence[Sequence[tuple[int, float]]],
        scopes: Sequence[Scope],
        top_k: int,
        as_of: float | None,
    ) -> list[Found]:
        """The memories of rankings by number, in the order of their joint scores."""
        if len(rankings) > 1:
            # Numbers stand in for the passages, so that only memories that are shown are read.
            named = [[ScoredPassage(Passage(str(number), ""), score) for number, score in row] for row in rankings]
            best = [(int(hit.passage.id), hit.score) for hit in fuse(named, LEXICAL_AND_DENSE)]
        else:
            best = list(rankings[0])
        memories = self._store.rows([number for number, _ in best], scopes)
        # One that was deleted a moment ago is left out.
        found = [Found(memories[number], score) for number, score in best if number in memories]
        return [hit for hit in found if as_of is None or hit.memory.holds_at(as_of)][:top_k]


def visible(user: str = "", agent: str = "") -> tuple[Scope, ...]:
    """What a user may see who talks to an agent: their own with this agent, their own, the agent's, the shared ones."""
    scopes = (Scope(user, agent), Scope(user), Scope(agent=agent), Scope())
    return tuple(dict.fromkeys(scopes))


def as_passage(memory: Memory) -> Passage:
    """A memory as the engine takes passages: its text is data, its veracity the passage's."""
    return Passage(
        address(memory),
        memory.content,
        source=f"{memory.source.kind}:{memory.source.id}" if memory.source.id else memory.source.kind,
        date=_day(memory.updated_at),
        veracity=memory.veracity,
    )


def address(memory: Memory) -> str:
    """Names a memory in the whole store, as the id of its passage: memory:user/agent/id, each part percent-quoted."""
    parts = (memory.scope.user, memory.scope.agent, memory.id)
    return "memory:" + "/".join(quote(part, safe="") for part in parts)


def scope_and_id(passage_id: str) -> tuple[Scope, str]:
    """What `address` was made from. Raises InvalidRequestError for the id of a passage that is no memory."""
    prefix, _, rest = passage_id.partition(":")
    parts = rest.split("/")
    if prefix != "memory" or len(parts) != 3 or not parts[2]:
        raise InvalidRequestError(f"{passage_id!r} is no memory")
    user, agent, memory_id = map(unquote, parts)
    return Scope(user, agent), memory_id


def _day(at: float) -> str:
    """The ISO date of a time in seconds since 1970; empty for one that no calendar has."""
    try:
        return datetime.fromtimestamp(at, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
