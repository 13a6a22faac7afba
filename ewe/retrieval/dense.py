"""Retrieval by meaning: passages whose vectors lie nearest to the query's."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ewe.config.lazy import warm
from ewe.retrieval.dense_index import DenseIndex, IndexKind, resolve_kind
from ewe.retrieval.encoders import Encoder
from ewe.retrieval.source import Keep, PassageSource, Progress, Rows, as_source, check_top_k, snapshot
from ewe.retrieval.store import IndexStale, PassageStore, fresh_index, publish_index
from ewe.retrieval.vectors import Vectors, count_vectors, is_made_by, read_note
from ewe.types import Passage, ScoredPassage

_LAYOUT = 1


class DenseRetriever:
    """The passages with the largest inner products of their vectors with the query's.

    Scores are the encoder's: cosines in [-1, 1] if its vectors have unit length (the default encoder: about 0.2 for
    unrelated texts at most, 0.5 and more where the passage speaks of the query), else unbounded inner products. Every
    passage has one, so that `top_k` passages are returned however far they are. Safe to call from several threads.

    passages: a datastore, a store, or any passages. A store's vectors and index lie in its folder: they are made when
    they are missing or belong to another encoder or other passages, and only texts that have no vector yet are
    encoded, also after a killed build; `progress` hears of (passages done, in all). index: how vectors are searched
    ("auto": flat up to 50,000, then ivf). recall: what an approximate index is tuned to. keep: only passages for which
    it is true can be found. Raises DatastoreError, and ConfigError if faiss is missing.
    """

    def __init__(
        self,
        passages: PassageSource | Iterable[Passage],
        encoder: Encoder,
        index: IndexKind = "auto",
        recall: float = 0.95,
        keep: Keep | None = None,
        progress: Progress | None = None,
    ) -> None:
        source = as_source(passages)
        self.encoder = encoder
        with snapshot(source):
            kind = resolve_kind(index, len(source))
            if isinstance(source, PassageStore):
                self._index, rowids = _stored(source, encoder, kind, recall, progress)
            else:
                self._index, rowids = _made(source, vectors_of(source, encoder), kind, recall, progress)
            self._rows = Rows(source, rowids, keep)
        self.description = f"{encoder.name.rsplit('/', 1)[-1]} ({kind})"

    def __len__(self) -> int:
        return len(self._index)

    def warm(self) -> None:
        """Loads the encoder, which has not been needed if the store holds an index of its vectors."""
        warm(self.encoder)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first; raises ValueError if top_k < 1."""
        check_top_k(top_k)
        hits = self._index.search(self.encoder.encode_queries(queries), top_k, self._rows.allowed)
        return [self._rows.fetch(positions, scores) for positions, scores in hits]


def vectors_of(source: PassageSource, encoder: Encoder) -> Vectors:
    """An encoder's vectors of a source: a store's in its folder, any other's in memory."""
    return Vectors(encoder, _folder(source, encoder.name) if isinstance(source, PassageStore) else None)


def stored_vectors(store: PassageStore, encoder_name: str) -> int:
    """How many vectors of an encoder lie in a store's folder, whether its passages still need them or not."""
    return count_vectors(_folder(store, encoder_name))


def _made(
    source: PassageSource, vectors: Vectors, kind: IndexKind, recall: float, progress: Progress | None
) -> tuple[DenseIndex, np.ndarray]:
    """The index of a source, and int64 [passages] the row of every position."""
    rowids, places = vectors.place(source.scan(), len(source), progress)
    return DenseIndex.build(kind, vectors.array(), places, recall), rowids


def _stored(
    store: PassageStore, encoder: Encoder, kind: IndexKind, recall: float, progress: Progress | None
) -> tuple[DenseIndex, np.ndarray]:
    """The index in a store's folder, made again if it does not belong to encoder and passages."""
    folder = _folder(store, encoder.name)
    parameters = {"encoder": encoder.name, "index": kind, "recall": recall, "layout": _LAYOUT}
    try:
        if not is_made_by(encoder, read_note(folder)):
            raise IndexStale(f"{folder} is not this encoder's")
        return _load(fresh_index(folder, "dense", store, parameters))
    except IndexStale:
        vectors = vectors_of(store, encoder)
        with publish_index(folder, "dense", store, parameters) as data:
            index, rowids = _made(store, vectors, kind, recall, progress)
            index.save(data / "index.faiss")
            np.save(data / "rowids.npy", rowids, allow_pickle=False)
        return _load(fresh_index(folder, "dense", store, parameters))


def _load(data: Path) -> tuple[DenseIndex, np.ndarray]:
    return DenseIndex.load(data / "index.faiss"), np.load(data / "rowids.npy", allow_pickle=False)


def _folder(store: PassageStore, encoder_name: str) -> Path:
    """Where an encoder's vectors and index lie, under its id or path, shortened from the left."""
    return store.index_dir("dense-" + re.sub(r"[^a-z0-9]+", "-", encoder_name.lower()).strip("-")[-80:])
