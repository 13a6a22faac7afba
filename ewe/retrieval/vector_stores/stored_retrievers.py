"""The retrievers over a store outside this process."""

from collections.abc import Mapping, Sequence
from typing import Any

from ewe.config import FilterConfig
from ewe.config.lazy import warm
from ewe.errors import DatastoreError
from ewe.retrieval.encoders import Encoder
from ewe.retrieval.source import check_top_k
from ewe.retrieval.vector_stores.vector_store import VectorStore
from ewe.retrieval.vectors import is_made_by
from ewe.text.words import words
from ewe.types import ScoredPassage


class StoredBM25:
    """BM25 over the words that the embedded one counts. Only passages that share a word with the query return."""

    def __init__(self, store: VectorStore, filters: FilterConfig) -> None:
        self._store, self._filters = store, filters
        self.description = f"BM25 in {store.kind}"

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first; raises ValueError if top_k < 1."""
        check_top_k(top_k)
        tokenized = [sorted(set(words(query))) for query in queries]
        given = [query for query in tokenized if query]
        hits = iter(self._store.search_words(given, top_k, self._filters) if given else ())
        return [next(hits) if query else [] for query in tokenized]


class StoredDense:
    """The passages whose vectors in the store have the largest inner products with the query's.

    metadata: the store's. Raises DatastoreError if it holds no vectors, or another encoder's.
    """

    def __init__(
        self, store: VectorStore, metadata: Mapping[str, Any], encoder: Encoder, filters: FilterConfig
    ) -> None:
        check_encoder(store, metadata, encoder)
        self._store, self._filters, self.encoder = store, filters, encoder
        self.description = f"{encoder.name.rsplit('/', 1)[-1]} in {store.kind}"

    def warm(self) -> None:
        """Loads the encoder."""
        warm(self.encoder)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first; raises ValueError if top_k < 1."""
        check_top_k(top_k)
        if not queries:
            return []
        return self._store.search_vectors(self.encoder.encode_queries(queries), top_k, self._filters)


def metadata_of(store: VectorStore) -> dict[str, Any]:
    """What was noted when the store was made. Raises DatastoreError if it is not there, or of another layout."""
    metadata = store.metadata()
    if metadata is None:
        raise DatastoreError(f"{store.uri} does not exist: `ewe index push DATASTORE {store.uri}` makes it")
    if metadata.get("layout") != store.layout:
        raise DatastoreError(f"{store.uri} was made by another version of the engine: push into a new one")
    return metadata


def check_encoder(store: VectorStore, metadata: Mapping[str, Any], encoder: Encoder | None) -> None:
    """Raises DatastoreError unless the store's vectors are this encoder's (None: unless it holds none)."""
    noted = metadata["encoder"]
    is_same = is_made_by(encoder, noted) if noted and encoder else noted is encoder
    if is_same:
        return
    held = "no vectors" if noted is None else f"vectors of {noted['name']} ({len(noted['probe'])} numbers each)"
    requested = "none" if encoder is None else f"those of {encoder.name} ({encoder.dimension})"
    raise DatastoreError(
        f"{store.uri} holds {held}, the settings ask for {requested}: set retrieval.retriever and retrieval.encoder to "
        "what it was made with, or push into a new one"
    )
