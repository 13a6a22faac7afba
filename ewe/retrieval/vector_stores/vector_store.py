"""What is asked of a store of passages outside this process, and what it holds of each passage."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ewe.config import FilterConfig
from ewe.retrieval.source import day_range, searched_text, tags
from ewe.retrieval.store.integrity import passage_digest
from ewe.text.words import words
from ewe.types import Passage, ScoredPassage

FIELDS = tuple(field.name for field in fields(Passage))
TOKEN_VARIABLE = "EWE_DATASTORE_TOKEN"  # noqa: S105 - the name of a variable
# Of the graph over vectors, as the embedded one has them, and how many vectors a search looks at.
LINKS, CONSTRUCTION, CANDIDATES = 32, 120, 200
# Analyzers may cut at what stands inside our words: "it's", "3.5".
_UNCUT = str.maketrans({"'": "", ".": "p", ",": "c"})


@runtime_checkable
class VectorStore(Protocol):
    """A collection of passages on a server or in a database of its own.

    uri: its address, without secrets. kind: the product, for people. layout: the version of what it holds.
    computes_bm25: whether it does so from the words of documents; one that does not is given their weights. Safe to
    call from several threads. All methods raise DatastoreError, naming the address, for a server that cannot be
    reached or refuses.
    """

    uri: str
    kind: str
    layout: int
    computes_bm25: bool

    def __len__(self) -> int: ...

    def close(self) -> None:
        """Closes its connections."""
        ...

    def metadata(self) -> dict[str, Any] | None:
        """What `create` was given; None if the collection is not there."""
        ...

    def create(self, metadata: Mapping[str, Any], dimension: int | None) -> None:
        """Makes the collection; dimension: of its vectors, None for a collection without."""
        ...

    def digests(self, keys: Sequence[str]) -> dict[str, str]:
        """The digests of the documents with these keys, as far as they are there."""
        ...

    def upsert(self, documents: Sequence[dict[str, Any]]) -> None:
        """Adds documents, in the place of those with the same keys."""
        ...

    def flush(self) -> None:
        """Makes what was added visible to searches."""
        ...

    def search_words(
        self, queries: Sequence[Sequence[str]], top_k: int, filters: FilterConfig
    ) -> list[list[ScoredPassage]]:
        """Per query (its words, each once and at least one) the best passages by BM25."""
        ...

    def search_vectors(self, queries: np.ndarray, top_k: int, filters: FilterConfig) -> list[list[ScoredPassage]]:
        """Per query (float32 [n, dimension]) the passages with the largest inner products."""
        ...


def document(passage: Passage, weights: Mapping[str, float] | None = None) -> dict[str, Any]:
    """What a store holds of a passage beside a vector, as JSON: its fields, and what they are found and filtered by.

    weights: of its words, for a store that does not compute BM25. They belong to the digest, since they depend on the
    other passages too.
    """
    first, last = day_range(passage.date)
    digest = passage_digest(passage)
    if weights is not None:
        digest = hashlib.blake2b(digest + json.dumps(weights).encode(), digest_size=len(digest)).digest()
    return {
        "key": hashlib.blake2b(passage.id.encode(), digest_size=16).hexdigest(),  # ids may be long and odd
        "digest": digest.hex(),
        **asdict(passage),
        "metadata": json.dumps(passage.metadata, sort_keys=True, ensure_ascii=False),
        "tags": sorted(set(tags(passage.metadata))),
        "first_day": first,
        "last_day": last,
        **({"words": " ".join(plain(words(searched_text(passage))))} if weights is None else {"weights": weights}),
    }


def stored_passage(values: Mapping[str, Any]) -> Passage:
    """The passage of a document's FIELDS; raises ValueError, LookupError or TypeError for others."""
    return Passage(**{**values, "metadata": json.loads(values["metadata"])})


def plain(names: Iterable[str]) -> list[str]:
    """Words spelled so that any server's analyzer leaves them whole."""
    return [word.translate(_UNCUT) for word in names]
