"""Nearest vectors by inner product: flat, inverted lists, a graph, or compressed."""

import math
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from ewe.errors import ConfigError, DatastoreError

IndexKind = Literal["auto", "flat", "ivf", "hnsw", "pq"]

FLAT_LIMIT = 50_000  # 384 numbers each: 77 MB, read in a few milliseconds
_LEAST = 256  # below, lists and codes have nothing to learn from
_PER_LIST = 48  # vectors that train one list
_LINKS, _CONSTRUCTION, _MOST_CANDIDATES = 32, 120, 2048
_CHUNK = 20_000
_TUNED_ON, _DEPTH = 256, 10
_NOISE = 0.75  # how far a sampled query lies from its vector, as a share of the vector's length


def resolve_kind(kind: IndexKind, count: int) -> IndexKind:
    """The kind that is made for `count` vectors: "auto" is flat up to 50,000, then ivf; flat below 256 in any case."""
    if kind == "auto":
        kind = "flat" if count <= FLAT_LIMIT else "ivf"
    return "flat" if count < _LEAST and kind in ("ivf", "pq") else kind


class DenseIndex:
    """A faiss index; scores are inner products, of vectors or (pq) of what their codes stand for."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self.dimension = int(index.d)
        self._is_lists, self._is_graph = hasattr(index, "nprobe"), hasattr(index, "hnsw")
        self._most = int(index.nlist) if self._is_lists else max(_MOST_CANDIDATES, int(index.ntotal))

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @classmethod
    def build(cls, kind: IndexKind, vectors: np.ndarray, places: np.ndarray, recall: float = 0.95) -> Self:
        """An index whose position i is the vector at places[i], read in chunks; lists and codes learn from a sample.

        vectors: float32 [n, dimension], which may be mapped. places: int64 [positions]. recall: the share of the ten
        best that a search finds, on noisy copies of stored vectors; sets how many lists (ivf, pq) or candidates (hnsw)
        a search looks at. What codes lose, pq cannot find: it stops where more lists no longer help.
        """
        count = len(places)
        kind = resolve_kind(kind, count)
        built = cls(_empty(kind, count, vectors.shape[1]))
        random = np.random.default_rng(0)
        if not built._index.is_trained:
            size = min(count, _PER_LIST * max(built._index.nlist, _LEAST))
            built._index.train(_sample(vectors, places, size, random))
        for chunk in _chunks(vectors, places):
            built._index.add(chunk)
        if kind != "flat":
            built._tune(vectors, places, recall, random)
        return built

    @classmethod
    def load(cls, path: Path) -> Self:
        """The index in a file that `save` wrote, mapped where faiss can. Only for files whose checksum was verified."""
        faiss = _faiss()
        try:
            return cls(faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC))
        except RuntimeError as error:
            raise DatastoreError(f"{path} cannot be read: {error}") from error

    def save(self, path: Path) -> None:
        """Writes the index; raises OSError for a full disk."""
        try:
            _faiss().write_index(self._index, str(path))
        except RuntimeError as error:
            raise OSError(f"faiss cannot write {path}: {error}") from error

    @property
    def effort(self) -> int:
        """Lists (ivf, pq) or candidates (hnsw) that a search looks at; 0 for flat. It is saved with the index."""
        if self._is_lists:
            return int(self._index.nprobe)
        return int(self._index.hnsw.efSearch) if self._is_graph else 0

    @effort.setter
    def effort(self, value: int) -> None:
        if self._is_lists:
            self._index.nprobe = value
        elif self._is_graph:
            self._index.hnsw.efSearch = value

    def search(
        self, queries: np.ndarray, top_k: int, allowed: np.ndarray | None = None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Per query (float32 [n, dimension]) positions (int64 [found]) and scores (float32 [found]), best first.

        allowed: bool [vectors], which positions may be found; the fewer there are, the wider an approximate index
        searches for them. Equal scores are ordered by position.
        """
        top_k = min(top_k, len(self))
        if not top_k or not len(queries):
            return [(np.zeros(0, np.int64), np.zeros(0, np.float32))] * len(queries)
        faiss, selector, share = _faiss(), None, 1.0
        if allowed is not None:
            share = max(float(allowed.mean()), 1 / len(self))
            bitmap = np.packbits(allowed, bitorder="little")  # has to live as long as the selector
            selector = faiss.IDSelectorBitmap(len(bitmap), faiss.swig_ptr(bitmap))
        effort = min(self._most, math.ceil(self.effort / share))
        if self._is_lists:
            parameters = faiss.SearchParametersIVF(sel=selector, nprobe=effort)
        elif self._is_graph:
            parameters = faiss.SearchParametersHNSW(sel=selector, efSearch=max(effort, top_k))
        else:
            parameters = faiss.SearchParameters(sel=selector)
        scores, positions = self._index.search(queries, top_k, params=parameters)
        return [_ordered(*row) for row in zip(positions, scores, strict=True)]

    def _tune(self, vectors: np.ndarray, places: np.ndarray, recall: float, random: np.random.Generator) -> None:
        """Sets the least effort that reaches `recall`, or the one beyond which it no longer rises."""
        knn_ground_truth = import_module("faiss.contrib.exhaustive_search").knn_ground_truth
        sample = _sample(vectors, places, min(len(places), _TUNED_ON), random)
        noise = random.standard_normal(sample.shape, dtype=np.float32)
        noise *= _NOISE * np.linalg.norm(sample, axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
        queries = sample + noise
        _, exact = knn_ground_truth(queries, _chunks(vectors, places), _DEPTH, _faiss().METRIC_INNER_PRODUCT, ngpu=0)
        most = self._most if self._is_lists else _MOST_CANDIDATES
        best, effort = -1.0, 1 if self._is_lists else 2 * _DEPTH
        while True:
            self.effort = effort = min(effort, most)
            overlaps = [
                np.isin(best, positions).mean()
                for best, (positions, _) in zip(exact, self.search(queries, _DEPTH), strict=True)
            ]
            reached = float(np.mean(overlaps))
            if reached >= recall or effort == most or (reached >= 0.5 and reached - best < 0.001):
                return
            best, effort = reached, max(effort + 1, round(effort * 1.4))


def _empty(kind: IndexKind, count: int, dimension: int) -> Any:
    faiss = _faiss()
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dimension, _LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = _CONSTRUCTION
        return index
    if kind not in ("ivf", "pq"):
        return faiss.IndexFlatIP(dimension)
    lists = max(1, min(round(4 * count**0.5), count // _PER_LIST))
    # Codes of a byte for every four numbers, or for more where four do not divide them.
    pieces = next(pieces for pieces in range(max(1, dimension // 4), 0, -1) if dimension % pieces == 0)
    codes = f"PQ{pieces}x8" if kind == "pq" else "Flat"
    index = faiss.index_factory(dimension, f"IVF{lists},{codes}", faiss.METRIC_INNER_PRODUCT)
    index.cp.min_points_per_centroid = 1  # a small collection needs no warning
    if kind == "pq":
        index.pq.cp.min_points_per_centroid = 1
        index.do_polysemous_training = False  # for a search by bits that nothing here uses; it took most of the time
    return index


def _chunks(vectors: np.ndarray, places: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(places), _CHUNK):
        yield vectors[places[start : start + _CHUNK]]


def _sample(vectors: np.ndarray, places: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    return np.asarray(vectors[places[np.sort(random.choice(len(places), size, replace=False))]])


def _ordered(positions: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    is_hit = positions >= 0
    positions, scores = positions[is_hit], scores[is_hit]
    order = np.lexsort((positions, -scores))
    return positions[order], scores[order]


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ConfigError("dense retrieval needs faiss: install it with pip install 'ewe-engine[dense]'") from error
    return faiss
