"""BM25 over statements in memory that become more and more."""

from array import array
from collections import Counter, defaultdict
from functools import lru_cache
from math import log

import numpy as np
from numpy.typing import NDArray

from ewe.longterm.store.lexical import terms
from ewe.retrieval.bm25 import K1, B

_Counts = tuple[dict[str, int], int]  # how often each word is there, and how many words there are
_Postings = tuple["array[int]", "array[int]"]  # the places of the statements with a word, and how often they have it


class ToldWords:
    """The words of at most `room` statements; scores are those of the store's `Lexicon` but for rounding."""

    def __init__(self, room: int) -> None:
        self._lengths = np.zeros(room)
        self._count = 0
        self._postings: defaultdict[str, _Postings] = defaultdict(lambda: (array("q"), array("q")))

    def add(self, text: str) -> None:
        """One more statement."""
        times, length = _counted(text)
        for word, often in times.items():
            places, counts = self._postings[word]
            places.append(self._count)
            counts.append(often)
        self._lengths[self._count] = length
        self._count += 1

    def scores(self, query: str, top_k: int) -> NDArray[np.float64]:
        """How well the best `top_k` statements fit the words of a text, 0 for all others; float64 [statements].

        Of equal ones the newest, as in the store.
        """
        scores, lengths = np.zeros(self._count), self._lengths[: self._count]
        norms = K1 * (1 - B + B * lengths / max(1.0, lengths.mean() if self._count else 1.0))
        for word in _counted(query)[0]:
            if word in self._postings:
                places, counts = (np.frombuffer(column, np.int64) for column in self._postings[word])
                weight = log(1 + (self._count - len(places) + 0.5) / (len(places) + 0.5))
                scores[places] += weight * counts / (counts + norms[places])
        scores[np.lexsort((-np.arange(self._count), -scores))[top_k:]] = 0.0
        return scores


@lru_cache(maxsize=1 << 14)
def _counted(text: str) -> _Counts:
    words = terms(text)
    return Counter(words), len(words)
