"""Lexical retrieval with BM25 over titles and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ewe.retrieval.postings import K1, B, Postings, build_postings
from ewe.retrieval.source import Keep, PassageSource, Progress, Rows, as_source, snapshot
from ewe.retrieval.store import IndexStale, PassageStore, fresh_index, publish_index
from ewe.retrieval.store.database import file_errors
from ewe.text.words import words
from ewe.types import Passage, ScoredPassage

_BLOCK = 1024
_PARAMETERS = {"k1": K1, "b": B, "method": "lucene", "layout": 1}


class BM25Retriever:
    """BM25 (Lucene's form, k1 = 1.5, b = 0.75) over the words of title and text.

    Scores are sums of term weights: 0 or more, without an upper bound, and comparable only within one index. Only
    passages that share a word with the query are returned (score > 0). Each word of a query counts once, so a name
    that stands in the prompt and in the sentence does not outweigh everything else. Equal scores keep the order in
    which the passages were given. Safe to call from several threads.

    passages: a datastore, a store, or any passages. The index of a store lies in its folder, is mapped, and is made
    again if it does not belong to what the store holds; `progress` then hears of (passages done, in all). keep: only
    passages for which it is true can be found. Raises DatastoreError.
    """

    description = "BM25"

    def __init__(
        self,
        passages: PassageSource | Iterable[Passage],
        keep: Keep | None = None,
        progress: Progress | None = None,
    ) -> None:
        source = as_source(passages)
        with snapshot(source):
            postings = _postings(source, progress)
            self._rows = Rows(source, postings.rowids, keep)
        self._postings = postings

    def __len__(self) -> int:
        return len(self._postings.rowids)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages with positive scores, best first; raises ValueError if top_k < 1."""
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {top_k}")
        return [self._search(query, top_k) for query in queries]

    def _search(self, query: str, top_k: int) -> list[ScoredPassage]:
        # Sorted, because float sums depend on their order and a query's result must not.
        vocabulary = self._postings.vocabulary
        known = [vocabulary[word] for word in sorted(set(words(query))) if word in vocabulary]
        if not known:
            return []
        scores = self._scores(known)
        if self._rows.allowed is not None:
            scores *= self._rows.allowed
        best = _best(scores, top_k)
        return self._rows.fetch(best, scores[best])

    def _scores(self, known: Sequence[int]) -> np.ndarray:
        """float32 [passages] of words by their numbers."""
        postings = self._postings
        scores = np.zeros(len(self), dtype=np.float32)
        for word in known:
            found = slice(postings.starts[word], postings.starts[word + 1])
            np.add.at(scores, postings.passages[found], postings.weights[found])
        return scores


def _postings(source: PassageSource, progress: Progress | None) -> Postings:
    """The index of a source: a store's from its folder, made again if it is stale; any other's in memory."""
    if not isinstance(source, PassageStore):
        return build_postings(source.scan(), len(source), progress=progress)
    folder = source.index_dir("bm25")
    try:
        return Postings.load(fresh_index(folder, "bm25", source, _PARAMETERS))
    except IndexStale:
        with publish_index(folder, "bm25", source, _PARAMETERS) as data, file_errors(data):
            build_postings(source.scan(), len(source), data, progress)
        return Postings.load(fresh_index(folder, "bm25", source, _PARAMETERS))


def _best(scores: np.ndarray, top_k: int) -> np.ndarray:
    """Positions of the `top_k` largest positive scores (float32 [passages]), best first, ties by position."""
    whole = len(scores) - len(scores) % _BLOCK
    floor = 0.0
    if whole // _BLOCK > top_k:
        # The kth best of the blocks' maxima is no higher than the kth best score; almost nothing else passes it.
        floor = float(np.partition(scores[:whole].reshape(-1, _BLOCK).max(axis=1), -top_k)[-top_k])
    candidates = np.flatnonzero(scores >= floor) if floor > 0 else np.flatnonzero(scores > 0)
    if len(candidates) > top_k:
        kth = np.partition(scores[candidates], -top_k)[-top_k]
        candidates = candidates[scores[candidates] >= kth]
    order = np.argsort(-scores[candidates], kind="stable")[:top_k]
    return candidates[order]
