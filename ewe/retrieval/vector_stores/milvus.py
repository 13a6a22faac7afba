"""Milvus: Milvus Lite in a file, or a server."""

import json
import logging
import os
import weakref
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ewe.config import FilterConfig
from ewe.errors import ConfigError, DatastoreError
from ewe.retrieval.source import day_range, required_tags
from ewe.retrieval.vector_stores.vector_store import (
    CANDIDATES,
    CONSTRUCTION,
    FIELDS,
    LINKS,
    TOKEN_VARIABLE,
    stored_passage,
)
from ewe.types import ScoredPassage

_SECONDS, _WRITE_SECONDS = 30.0, 600.0  # Milvus Lite builds its graphs inside a write
_LONGEST = 65_535  # bytes of a text, Milvus's own limit
_MOST_TAGS = 4096  # of a passage, Milvus's own limit
_NUMBERS = ("veracity", "first_day", "last_day")
_WITHOUT_WORDS = {0: 1.0}  # Milvus Lite refuses empty vectors; no word has this dimension


class MilvusStore:
    """A collection of Milvus: BM25 as inner products of sparse vectors, vectors in an HNSW graph. Is a `VectorStore`.

    Milvus's own BM25 counts words per segment, so that its order is another one. Here a passage comes with the weights
    of its words, which hold for the whole datastore, and a query has 1 for each of its words.

    server: a URL, or the path of a file that ends with .db, which one process at a time may open. Raises ConfigError
    without pymilvus, DatastoreError for a server that cannot be reached.
    """

    kind = "Milvus"
    layout, computes_bm25 = 4, False

    def __init__(self, server: str, collection: str, uri: str) -> None:
        try:
            import grpc
            import pymilvus
        except ImportError as error:
            raise ConfigError("Milvus needs pymilvus: install it with pip install 'ewe-engine[milvus]'") from error
        for name in ("pymilvus", "milvus_lite"):  # they print a traceback of every error, which we raise
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.uri, self._collection, self._pymilvus = uri, collection, pymilvus
        self._failures = pymilvus.MilvusException, grpc.RpcError
        try:
            self._client = pymilvus.MilvusClient(server, token=os.environ.get(TOKEN_VARIABLE, ""), timeout=_SECONDS)
        except self._failures as error:
            advice = "" if "://" in server else "; only one process at a time may open a file"
            raise DatastoreError(f"{uri} cannot be opened: {error}{advice}") from error
        weakref.finalize(self, self._client.close)  # for those whom nobody closes

    def __len__(self) -> int:
        [row] = self._call("query", filter="", output_fields=["count(*)"])
        return int(row["count(*)"])

    def close(self) -> None:
        """Closes its connection; a file stays open until the process ends."""
        self._client.close()

    def metadata(self) -> dict[str, Any] | None:
        """What `create` was given; None if the collection is not there."""
        if not self._call("has_collection"):
            return None
        noted = self._call("describe_collection").get("properties", {}).get("ewe")
        if noted is None:
            raise DatastoreError(f"{self.uri} was not made by `ewe index push`")
        self._call("load_collection", timeout=_WRITE_SECONDS)  # Milvus Lite forgets that it was when its process ends
        metadata: dict[str, Any] = json.loads(noted)
        return metadata

    def create(self, metadata: Mapping[str, Any], dimension: int | None) -> None:
        """Makes the collection; dimension: of its vectors, None for a collection without."""
        types = self._pymilvus.DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", types.VARCHAR, is_primary=True, max_length=64)
        for name in ("digest", *FIELDS):
            if name not in _NUMBERS:
                schema.add_field(name, types.VARCHAR, max_length=_LONGEST)
        for name in _NUMBERS:
            schema.add_field(name, types.DOUBLE if name == "veracity" else types.INT64)
        texts = {"element_type": types.VARCHAR, "max_length": _LONGEST, "max_capacity": _MOST_TAGS}
        schema.add_field("tags", types.ARRAY, **texts)
        schema.add_field("weights", types.SPARSE_FLOAT_VECTOR)
        indexes = self._client.prepare_index_params()
        indexes.add_index("weights", "SPARSE_INVERTED_INDEX", metric_type="IP")
        if dimension is not None:
            schema.add_field("vector", types.FLOAT_VECTOR, dim=dimension)
            parameters = {"M": LINKS, "efConstruction": CONSTRUCTION}
            indexes.add_index("vector", "HNSW", metric_type="IP", params=parameters)
        noted = {"ewe": json.dumps(metadata)}
        self._call("create_collection", schema=schema, index_params=indexes, properties=noted)

    def digests(self, keys: Sequence[str]) -> dict[str, str]:
        """The digests of the documents with these keys, as far as they are there."""
        rows = self._call("get", ids=list(keys), output_fields=["key", "digest"])
        return {row["key"]: row["digest"] for row in rows}

    def upsert(self, documents: Sequence[dict[str, Any]]) -> None:
        """Adds documents, in the place of those with the same keys. Raises DatastoreError for one that is too long."""
        for document in documents:
            size = max(len(value.encode()) for value in document.values() if isinstance(value, str))
            if size > _LONGEST:
                raise DatastoreError(
                    f"Milvus takes texts of at most {_LONGEST:,} bytes, passage {document['id'][:80]!r} has one of "
                    f"{size:,}: `ewe index build` cuts documents into passages"
                )
        data = [{**document, "weights": _sparse(document["weights"]) or _WITHOUT_WORDS} for document in documents]
        self._call("upsert", data=data, timeout=_WRITE_SECONDS)

    def flush(self) -> None:
        """Makes what was added visible to searches."""
        self._call("flush", timeout=_WRITE_SECONDS)

    def search_words(
        self, queries: Sequence[Sequence[str]], top_k: int, filters: FilterConfig
    ) -> list[list[ScoredPassage]]:
        """Per query (its words) the best passages by BM25."""
        return self._search([_sparse(dict.fromkeys(query, 1.0)) for query in queries], "weights", top_k, filters)

    def search_vectors(self, queries: np.ndarray, top_k: int, filters: FilterConfig) -> list[list[ScoredPassage]]:
        """Per query (float32 [n, dimension]) the passages with the largest inner products."""
        return self._search(queries.tolist(), "vector", top_k, filters)

    def _search(self, queries: list[Any], field: str, top_k: int, filters: FilterConfig) -> list[list[ScoredPassage]]:
        parameters = {"ef": max(CANDIDATES, 2 * top_k)} if field == "vector" else {}
        answer = self._call(
            "search",
            data=queries,
            anns_field=field,
            limit=top_k,
            filter=_expression(filters),
            output_fields=list(FIELDS),
            search_params={"params": parameters},
        )
        return [[ScoredPassage(stored_passage(hit["entity"]), hit["distance"]) for hit in hits] for hits in answer]

    def _call(self, method: str, **arguments: Any) -> Any:
        try:
            return getattr(self._client, method)(self._collection, **{"timeout": _SECONDS, **arguments})
        except self._failures as error:
            raise DatastoreError(f"{self.uri}: {error}") from error


def _sparse(weights: Mapping[str, float]) -> dict[int, float]:
    """Weights of words as a sparse vector: a word's dimension is a hash of it, from 1 to 2^32 - 2.

    Of a million words, some hundred pairs share a dimension. A query with one word of such a pair then also finds the
    other, with its weight; a passage with both has the sum.
    """
    vector: dict[int, float] = {}
    for word, weight in weights.items():
        dimension = 1 + zlib.crc32(word.encode()) % (2**32 - 2)
        vector[dimension] = vector.get(dimension, 0.0) + weight
    return vector


def _expression(filters: FilterConfig) -> str:
    """The conditions in Milvus's language; empty without any."""
    conditions = []
    if filters.sources:
        conditions.append(f"source in {_quoted(filters.sources)}")
    if filters.without:
        conditions.append(f"source not in {_quoted(filters.without)}")
    if filters.url_prefix:
        # As a range: in a pattern, "_" and "%" would stand for anything.
        first, last = _quoted(filters.url_prefix), _quoted(filters.url_prefix + "\U0010ffff")
        conditions.append(f"url >= {first} and url < {last}")
    if filters.min_veracity:
        conditions.append(f"veracity >= {filters.min_veracity}")
    if filters.since:
        conditions.append(f"last_day >= {day_range(filters.since)[0]}")
    if filters.until:
        conditions.append(f"first_day <= {day_range(filters.until)[1]}")
    conditions += [f"array_contains_any(tags, {_quoted(tuple(group))})" for group in required_tags(filters)]
    return " and ".join(conditions)


def _quoted(value: str | tuple[str, ...]) -> str:
    return json.dumps(value, ensure_ascii=False)
