"""Lexical retrieval with BM25 over titles and texts; its index is built from a stream, a batch at a time."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import numpy as np

from ewe.retrieval.source import Keep, PassageSource, Progress, Rows, as_source, check_top_k, searched_text, snapshot
from ewe.retrieval.store import IndexStale, PassageStore, fresh_index, publish_index
from ewe.text.words import words
from ewe.types import Passage, ScoredPassage

K1, B = 1.5, 0.75
_PARAMETERS = {"k1": K1, "b": B, "method": "lucene", "layout": 1, "words": 2}
_BLOCK = 1024
_BATCH = 10_000  # passages
_IN_MEMORY = 1 << 26
_ARRAYS = ("weights", "passages", "starts", "rowids")
_VOCABULARY = "vocabulary.json"


class BM25Retriever:
    """BM25 (Lucene's form, k1 = 1.5, b = 0.75) over the words of title and text.

    Scores are sums of term weights: 0 or more, without an upper bound, and comparable only within one index. Only
    passages that share a word with the query are returned (score > 0). Each word of a query counts once, so a name
    that stands in the prompt and in the sentence does not outweigh everything else. Equal scores keep the order in
    which the passages were given. Safe to call from several threads.

    source: a datastore, a store, or any passages. The index of a store lies in its folder, is mapped, and is made
    again if it does not belong to what the store holds; `progress` then hears of (passages done, in all). keep: only
    passages for which it is true can be found. batch: how many are indexed at once. Raises DatastoreError.
    """

    description = "BM25"

    def __init__(
        self,
        source: PassageSource | Iterable[Passage],
        keep: Keep | None = None,
        progress: Progress | None = None,
        batch: int = _BATCH,
    ) -> None:
        opened = as_source(source)
        with snapshot(opened):
            self._postings = postings_of(opened, progress, batch)
            self._rows = Rows(opened, self._postings.rowids, keep)

    def __len__(self) -> int:
        return len(self._postings.rowids)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages with positive scores, best first; raises ValueError if top_k < 1."""
        check_top_k(top_k)
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
            span = slice(postings.starts[word], postings.starts[word + 1])
            np.add.at(scores, postings.passages[span], postings.weights[span])
        return scores


def postings_of(source: PassageSource, progress: Progress | None = None, batch: int = _BATCH) -> Postings:
    """The index of a source: a store's from its folder, made again if it is stale; any other's in memory."""
    if not isinstance(source, PassageStore):
        return build_postings(source.scan(), len(source), progress=progress, batch=batch)
    folder = source.index_dir("bm25")
    try:
        return Postings.load(fresh_index(folder, "bm25", source, _PARAMETERS))
    except IndexStale:
        with publish_index(folder, "bm25", source, _PARAMETERS) as data:
            build_postings(source.scan(), len(source), data, progress, batch)
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


@dataclass(frozen=True, slots=True)
class Postings:
    """Per word the passages that hold it and what it adds to their scores.

    Word w's postings are weights[starts[w]:starts[w + 1]] (float32) of the passages at the same places of `passages`
    (int32 positions, rising); starts: int64 [words + 1]; rowids: int64 [passages], the row of each position.
    """

    vocabulary: dict[str, int]
    weights: np.ndarray
    passages: np.ndarray
    starts: np.ndarray
    rowids: np.ndarray

    @classmethod
    def load(cls, folder: Path) -> Postings:
        """The index that `build_postings` wrote, its arrays mapped, not read."""
        arrays = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS]
        listed = json.loads((folder / _VOCABULARY).read_text(encoding="utf-8"))
        # As plain arrays: slicing a memmap costs more than a short posting list.
        return cls({word: index for index, word in enumerate(listed)}, *map(np.asarray, arrays))

    def weights_of(self, position: int, passage: Passage) -> dict[str, float]:
        """What each word of the passage at a position adds to its score, in the order of its words."""
        weights = {}
        column = np.int32(position)  # of another type, every search would copy the postings
        for word in dict.fromkeys(words(searched_text(passage))):
            number = self.vocabulary[word]
            first, last = self.starts[number : number + 2]
            place = first + self.passages[first:last].searchsorted(column)
            weights[word] = float(self.weights[place])
        return weights


def build_postings(
    rows: Iterable[tuple[int, Passage]],
    total: int,
    folder: Path | None = None,
    progress: Progress | None = None,
    batch: int = _BATCH,
) -> Postings:
    """An index of (rowid, passage) pairs, `total` of them as far as `progress` is concerned; in `folder` if given.

    A word's weight in a passage is idf * tf / (tf + k1 * (1 - b + b * length / mean length)) with idf =
    ln(1 + (N - df + 0.5) / (df + 0.5)): Lucene's BM25. Memory: the vocabulary, 12 bytes per passage and
    one batch, if there is a folder. Raises OSError, also for a full disk.
    """
    with SpooledTemporaryFile(max_size=_IN_MEMORY, dir=None if folder is None else str(folder)) as spool:
        builder = _Builder(spool)
        stream = iter(rows)
        while read := list(islice(stream, batch)):
            builder.add(read)
            if progress is not None:
                progress(len(builder.rowids), total)
        return builder.finish(folder)


class _Builder:
    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._sizes: list[int] = []
        self._vocabulary: dict[str, int] = {}
        self._lengths = array("i")
        self.rowids = array("q")

    def add(self, batch: list[tuple[int, Passage]]) -> None:
        """Writes the batch's (word, passage, count) as three int32 arrays, sorted by word, then passage."""
        tokens = [words(searched_text(passage)) for _, passage in batch]
        lengths, numbers = [len(each) for each in tokens], self._vocabulary
        flat = np.array([numbers.setdefault(word, len(numbers)) for each in tokens for word in each], dtype=np.int64)
        first = len(self.rowids)
        positions = np.repeat(np.arange(first, first + len(batch), dtype=np.int64), lengths)
        keys, counts = np.unique(flat << 32 | positions, return_counts=True)
        for column in (keys >> 32, keys & 0xFFFFFFFF, counts):
            self._spool.write(column.astype(np.int32).tobytes())
        self._sizes.append(len(keys))
        self._lengths.extend(lengths)
        self.rowids.extend(rowid for rowid, _ in batch)

    def finish(self, folder: Path | None) -> Postings:
        """All postings by word, with weights in place of counts; in `folder` if given."""
        make = partial(_array, folder)
        starts = make("starts", np.int64, len(self._vocabulary) + 1)
        frequencies = np.zeros(len(self._vocabulary), dtype=np.int64)
        for word_numbers, _, _ in self._blocks():
            frequencies += np.bincount(word_numbers, minlength=len(frequencies))
        starts[0] = 0
        np.cumsum(frequencies, out=starts[1:])
        weights, passages = make("weights", np.float32, starts[-1]), make("passages", np.int32, starts[-1])
        self._scatter(weights, passages, frequencies, starts[:-1].copy())
        rowids = make("rowids", np.int64, len(self.rowids))
        rowids[:] = np.asarray(self.rowids)
        if folder is not None:
            (folder / _VOCABULARY).write_text(json.dumps(list(self._vocabulary)), encoding="utf-8")
        return Postings(self._vocabulary, *map(np.asarray, (weights, passages, starts, rowids)))

    def _scatter(self, weights: np.ndarray, passages: np.ndarray, frequencies: np.ndarray, heads: np.ndarray) -> None:
        """Puts every posting in its place; heads: int64 [words], where the next posting of a word goes."""
        idf = np.log(1 + (len(self.rowids) - frequencies + 0.5) / (frequencies + 0.5))
        lengths = np.asarray(self._lengths)
        norms = K1 * (1 - B + B * lengths / max(1.0, lengths.mean())) if len(lengths) else lengths
        for word_numbers, positions, counts in self._blocks():
            distinct, begins, sizes = np.unique(word_numbers, return_index=True, return_counts=True)
            places = np.arange(len(word_numbers)) + np.repeat(heads[distinct] - begins, sizes)
            passages[places] = positions
            weights[places] = idf[word_numbers] * counts / (counts + norms[positions])
            heads[distinct] += sizes

    def _blocks(self) -> Iterator[np.ndarray]:
        """Per batch int32 [3, postings]: words, passages, counts."""
        self._spool.seek(0)
        for size in self._sizes:
            yield np.frombuffer(self._spool.read(12 * size), dtype=np.int32).reshape(3, size)


def _array(folder: Path | None, name: str, dtype: Any, size: int) -> np.ndarray:
    """An array to fill, in a file of the folder if there is one."""
    if folder is None:
        return np.empty(size, dtype)
    path = folder / f"{name}.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(int(size),))
    # A mapped file gets its room when it is written to, and a full disk then kills the process: ask for it now.
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return mapped
