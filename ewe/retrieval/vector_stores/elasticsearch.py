"""Elasticsearch (8.11 or newer) and OpenSearch (2.13 or newer), by their HTTP interface."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import urllib3

from ewe.config import FilterConfig
from ewe.errors import DatastoreError
from ewe.retrieval.bm25 import K1, B
from ewe.retrieval.source import day_range, required_tags
from ewe.retrieval.vector_stores.vector_store import (
    CANDIDATES,
    CONSTRUCTION,
    FIELDS,
    LINKS,
    TOKEN_VARIABLE,
    plain,
    stored_passage,
)
from ewe.types import ScoredPassage

_MOST_CANDIDATES = 10_000
_MOST_WORDS = 1024  # of a query; servers refuse more
_ONLY_KEPT = {"type": "keyword", "index": False, "doc_values": False}
_FILTERED = {"type": "keyword", "ignore_above": 8191}  # characters: at four bytes each, what Lucene takes
_CONNECTIONS = 16
_RETRY = urllib3.Retry(
    3,
    backoff_factor=0.5,
    status_forcelist=(429, 502, 503, 504),
    allowed_methods=None,
    raise_on_status=False,
    respect_retry_after_header=False,  # a search cannot wait for as long as a server likes
)
_TIMEOUT = urllib3.Timeout(connect=5, read=60)
Json = dict[str, Any]


class ElasticsearchStore:
    """An index of Elasticsearch or OpenSearch: BM25 over our words, vectors in an HNSW graph. Is a `VectorStore`.

    server: its URL. The two differ in how vectors are stored and asked for.
    """

    layout, computes_bm25 = 3, True

    def __init__(self, server: str, index: str, uri: str, is_opensearch: bool) -> None:
        self.uri, self._url, self._is_opensearch = uri, f"{server}/{index}", is_opensearch
        self.kind = "OpenSearch" if is_opensearch else "Elasticsearch"
        headers = _authorization(os.environ.get(TOKEN_VARIABLE, ""))
        self._pool = urllib3.PoolManager(maxsize=_CONNECTIONS, headers=headers, retries=_RETRY, timeout=_TIMEOUT)

    def __len__(self) -> int:
        with self._understanding():
            return int(self._call("GET", "_count")["count"])

    def close(self) -> None:
        """Closes its connections."""
        self._pool.clear()

    def metadata(self) -> Json | None:
        """What `create` was given; None if the index is not there."""
        mapping = self._call("GET", "_mapping", may_lack=True)
        if not mapping:
            return None
        with self._understanding():
            index = next(iter(mapping.values()))  # under an alias the index has a name of its own
            metadata: Json | None = index["mappings"].get("_meta", {}).get("ewe")
        if metadata is None:
            raise DatastoreError(f"{self.uri} was not made by `ewe index push`")
        return metadata

    def create(self, metadata: Mapping[str, Any], dimension: int | None) -> None:
        """Makes the index; dimension: of its vectors, None for an index without."""
        properties: Json = dict.fromkeys(("digest", *FIELDS), _ONLY_KEPT)
        properties |= {
            "source": _FILTERED,
            "url": _FILTERED,
            "tags": _FILTERED,
            "veracity": {"type": "double"},
            "first_day": {"type": "integer"},
            "last_day": {"type": "integer"},
            "words": {"type": "text", "analyzer": "whitespace"},
        }
        index: Json = {"similarity": {"default": {"type": "BM25", "k1": K1, "b": B}}}
        if dimension is not None:
            properties["vector"] = self._vector_field(dimension)
            if self._is_opensearch:
                index["knn"] = True
        mappings = {
            "_meta": {"ewe": metadata},
            "_source": {"excludes": ["words", "vector"]},
            "dynamic": "strict",
            "properties": properties,
        }
        self._call("PUT", "", {"settings": {"index": index}, "mappings": mappings})

    def digests(self, keys: Sequence[str]) -> dict[str, str]:
        """The digests of the documents with these keys, as far as they are there."""
        with self._understanding():
            documents = self._call("POST", "_mget?_source=digest", {"ids": list(keys)})["docs"]
            return {item["_id"]: item["_source"]["digest"] for item in documents if item.get("found")}

    def upsert(self, documents: Sequence[Json]) -> None:
        """Adds documents, in the place of those with the same keys. Raises DatastoreError for the first refusal."""
        lines: list[Json] = []
        for document in documents:
            content = dict(document)
            lines += [{"index": {"_id": content.pop("key")}}, content]
        with self._understanding():
            answer = self._call("POST", "_bulk", lines)
            if answer["errors"]:
                refused = next(item["index"] for item in answer["items"] if "error" in item["index"])
                raise DatastoreError(f"{self.uri} refused a passage: {_excerpt(refused['error'])}")

    def flush(self) -> None:
        """Makes what was added visible to searches."""
        self._call("POST", "_refresh")

    def search_words(
        self, queries: Sequence[Sequence[str]], top_k: int, filters: FilterConfig
    ) -> list[list[ScoredPassage]]:
        """Per query (its words) the best passages by BM25."""
        bool_query = _conditions(filters)
        texts = [" ".join(sorted(set(plain(query)))[:_MOST_WORDS]) for query in queries]
        bodies = [{"query": {"bool": {"must": {"match": {"words": text}}, "filter": bool_query}}} for text in texts]
        # Words are counted over all shards, not in each for itself.
        return self._search("dfs_query_then_fetch", bodies, top_k, float)

    def search_vectors(self, queries: np.ndarray, top_k: int, filters: FilterConfig) -> list[list[ScoredPassage]]:
        """Per query (float32 [n, dimension]) the passages with the largest inner products."""
        bodies = [self._nearest(query, top_k, _conditions(filters)) for query in queries.tolist()]
        return self._search("query_then_fetch", bodies, top_k, _inner_product)

    def _vector_field(self, dimension: int) -> Json:
        graph = {"m": LINKS, "ef_construction": CONSTRUCTION}
        if self._is_opensearch:
            method = {"name": "hnsw", "engine": "lucene", "space_type": "innerproduct", "parameters": graph}
            return {"type": "knn_vector", "dimension": dimension, "method": method}
        # The type is named because newer versions else keep only a few bits of each number.
        options = {"type": "hnsw", **graph}
        kind = {"type": "dense_vector", "similarity": "max_inner_product", "index": True}
        return {**kind, "dims": dimension, "index_options": options}

    def _nearest(self, query: list[float], top_k: int, conditions: list[Json]) -> Json:
        candidates = min(max(CANDIDATES, 2 * top_k), _MOST_CANDIDATES)
        if self._is_opensearch:
            bool_query: Json = {"bool": {"filter": conditions}}
            return {"query": {"knn": {"vector": {"vector": query, "k": candidates, "filter": bool_query}}}}
        sizes = {"k": top_k, "num_candidates": candidates}
        return {"knn": {"field": "vector", "query_vector": query, **sizes, "filter": conditions}}

    def _search(
        self, kind: str, bodies: list[Json], top_k: int, score: Callable[[float], float]
    ) -> list[list[ScoredPassage]]:
        """Per search of this kind what it finds, best first; score: from the server's scores to ours."""
        header, more = {"search_type": kind}, {"size": top_k, "_source": list(FIELDS)}
        lines = [line for body in bodies for line in (header, body | more)]
        results = []
        with self._understanding():
            for answer in self._call("POST", "_msearch", lines)["responses"]:
                if "error" in answer:
                    raise DatastoreError(f"{self.uri}: {_excerpt(answer['error'])}")
                self._check_whole(answer)
                hits = answer["hits"]["hits"]
                results.append([ScoredPassage(stored_passage(hit["_source"]), score(hit["_score"])) for hit in hits])
        return results

    def _check_whole(self, answer: Json) -> None:
        """Servers answer with what some of their shards hold where others fail."""
        failed = answer.get("_shards", {}).get("failed")
        if failed or answer.get("timed_out"):
            why = f"{failed} of its shards failed" if failed else "it ran out of time"
            raise DatastoreError(f"{self.uri} answered in part only: {why}")

    @contextmanager
    def _understanding(self) -> Iterator[None]:
        """While an answer is read, whose form somebody else's server may not keep to."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
            raise DatastoreError(f"{self.uri} is no {self.kind}: its answer has another form ({error!r})") from error

    def _call(self, method: str, path: str, body: Json | list[Json] | None = None, may_lack: bool = False) -> Json:
        """The answer; a list is sent as one line each. may_lack: an index that is not there gives an empty answer."""
        lines: Iterable[Json] = body if isinstance(body, list) else () if body is None else (body,)
        sent = "".join(json.dumps(line) + "\n" for line in lines).encode()
        kind = {"Content-Type": "application/x-ndjson" if isinstance(body, list) else "application/json"}
        try:
            response = self._pool.request(
                method,
                f"{self._url}/{path}".rstrip("/"),
                body=sent or None,
                headers={**self._pool.headers, **kind},
                redirect=False,
            )
            if response.status == 404 and may_lack:
                return {}
            if response.status >= 300:
                raise DatastoreError(f"{self.uri} answered HTTP {response.status}: {_excerpt(response.data.decode())}")
            answer: Json = json.loads(response.data)
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise DatastoreError(f"{self.uri} cannot be reached, or is no {self.kind}: {error}") from error
        with self._understanding():
            self._check_whole(answer)
        return answer


def _conditions(filters: FilterConfig) -> list[Json]:
    """The conditions as queries that all have to match."""
    conditions: list[Json] = []
    if filters.sources:
        conditions.append({"terms": {"source": filters.sources}})
    if filters.without:
        conditions.append({"bool": {"must_not": {"terms": {"source": filters.without}}}})
    if filters.url_prefix:
        conditions.append({"prefix": {"url": filters.url_prefix}})
    if filters.min_veracity:
        conditions.append({"range": {"veracity": {"gte": filters.min_veracity}}})
    if filters.since:
        conditions.append({"range": {"last_day": {"gte": day_range(filters.since)[0]}}})
    conditions += [{"terms": {"tags": group}} for group in required_tags(filters)]
    if filters.until:
        conditions.append({"range": {"first_day": {"lte": day_range(filters.until)[1]}}})
    return conditions


def _inner_product(score: float) -> float:
    """Of a score, which both servers make positive: x + 1 for x >= 0, else 1 / (1 - x)."""
    return score - 1.0 if score >= 1.0 else 1.0 - 1.0 / score


def _authorization(token: str) -> dict[str, str]:
    """The header for "user:password", or for an API key."""
    if ":" in token:
        return dict(urllib3.make_headers(basic_auth=token))
    return {"Authorization": f"ApiKey {token}"} if token else {}


def _excerpt(answer: object) -> str:
    return str(answer)[:300]
