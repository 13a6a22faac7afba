"""Lexical retrieval with BM25 over titles and texts.

Owns: what is indexed and how ties are broken; the scoring is bm25s. Knows `ewe.text` and `ewe.types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import bm25s
import numpy as np

from ewe.text.words import words
from ewe.types import Passage, ScoredPassage


class BM25Retriever:
    """BM25 (Lucene's form, k1 = 1.5, b = 0.75) over the words of title and text.

    Scores are sums of term weights: 0 or more, without an upper bound, and comparable only within one index. Only
    passages that share a word with the query are returned (score > 0). Each word of a query counts once, so a name
    that stands in the prompt and in the sentence does not outweigh everything else. Equal scores keep the order in
    which the passages were given. Safe to call from several threads.
    """

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple(passages)
        documents = [words(f"{passage.title}\n{passage.text}") for passage in self._passages]
        self._index: Any = None
        if any(documents):
            self._index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
            self._index.index(documents, show_progress=False)

    def __len__(self) -> int:
        return len(self._passages)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages with positive scores, best first; raises ValueError if top_k < 1."""
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {top_k}")
        return [self._search(query, top_k) for query in queries]

    def _search(self, query: str, top_k: int) -> list[ScoredPassage]:
        if self._index is None:
            return []
        # Sorted, because float sums depend on their order and a query's result must not.
        tokens = self._index.get_tokens_ids(sorted(set(words(query))))
        if not tokens:
            return []
        scores = self._index.get_scores_from_ids(tokens)
        return [ScoredPassage(self._passages[i], float(scores[i])) for i in _best(scores, top_k)]


def _best(scores: np.ndarray, top_k: int) -> list[int]:
    """Indices of the `top_k` largest positive scores (float32 [passages]), best first, ties by index."""
    candidates = np.flatnonzero(scores > 0)
    if len(candidates) > top_k:
        kth = np.partition(scores[candidates], -top_k)[-top_k]
        candidates = candidates[scores[candidates] >= kth]
    order = np.argsort(-scores[candidates], kind="stable")[:top_k]
    return [int(index) for index in candidates[order]]
