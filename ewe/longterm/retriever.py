"""Memories for the engine: a store as a retriever.

Owns: which scopes one retriever sees. Knows the search over memories and `ewe.types`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ewe.errors import ConfigError
from ewe.longterm.records import Memory, Scope
from ewe.longterm.search import LEAST_COSINE, MemorySearch, as_passage
from ewe.longterm.store.reading import MemoryReader
from ewe.retrieval.encoders import Encoder
from ewe.types import ScoredPassage

Admit = Callable[[Memory], bool]  # whether a memory that was found may be used
_WIDER = 4


class MemoryRetriever:
    """An `ewe.protocols.Retriever` over the memories of some scopes; a passage has its memory's veracity as its own.

    Ids of passages are addresses of memories (`ewe.longterm.search.scope_and_id` reads them). admit: leaves out what
    must not be used as it is (by a threshold of veracity, say); it looks at four times `top_k` memories then. It only
    reads: recalls are counted, and memories revised, by whoever writes to the store. Safe to call from several threads.
    Raises ConfigError without a scope, or if another encoder made the store's vectors.
    """

    def __init__(
        self,
        store: MemoryReader,
        scopes: Sequence[Scope],
        encoder: Encoder | None = None,
        admit: Admit | None = None,
        least_cosine: float = LEAST_COSINE,
    ) -> None:
        if not scopes:
            raise ConfigError("a retriever of memories needs at least one scope that it may see")
        self._search = MemorySearch(store, encoder, least_cosine)
        self._scopes, self._admit = tuple(scopes), admit
        self.description = f"memories by {self._search.description}"

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` memories as passages, best first; raises ValueError if top_k < 1."""
        admit = self._admit
        found = self._search.search(queries, self._scopes, top_k if admit is None else _WIDER * top_k)
        return [
            [ScoredPassage(as_passage(hit.memory), hit.score) for hit in row if admit is None or admit(hit.memory)][
                :top_k
            ]
            for row in found
        ]
