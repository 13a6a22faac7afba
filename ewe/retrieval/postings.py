"""Building a BM25 index from a stream of passages, of which only a batch is held at a time."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import numpy as np

from ewe.retrieval.source import Progress, searched_text
from ewe.text.words import words
from ewe.types import Passage

K1, B = 1.5, 0.75
_BATCH = 10_000
_IN_MEMORY = 1 << 26
_ARRAYS = ("weights", "passages", "starts", "rowids")
_VOCABULARY = "vocabulary.json"


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


class _Vocabulary(dict[str, int]):
    """Numbers words in the order in which they are first asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]


def build_postings(
    rows: Iterable[tuple[int, Passage]], total: int, folder: Path | None = None, progress: Progress | None = None
) -> Postings:
    """An index of (rowid, passage) pairs, `total` of them as far as `progress` is concerned; in `folder` if given.

    A word's weight in a passage is idf * tf / (tf + k1 * (1 - b + b * length / mean length)) with idf =
    ln(1 + (N - df + 0.5) / (df + 0.5)): Lucene's BM25. Memory: the vocabulary, 12 bytes per passage and
    one batch, if there is a folder. Raises OSError, also for a full disk.
    """
    with SpooledTemporaryFile(max_size=_IN_MEMORY, dir=None if folder is None else str(folder)) as spool:
        builder = _Builder(spool)
        stream = iter(rows)
        while batch := list(islice(stream, _BATCH)):
            builder.add(batch)
            if progress is not None:
                progress(len(builder.rowids), total)
        return builder.finish(folder)


class _Builder:
    """Collects the postings of batches in a temporary file, then brings them together by word."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._sizes: list[int] = []
        self._vocabulary = _Vocabulary()
        self._lengths = array("i")
        self.rowids = array("q")

    def add(self, batch: list[tuple[int, Passage]]) -> None:
        """Writes the batch's (word, passage, count) as three int32 arrays, sorted by word, then passage."""
        tokens = [words(searched_text(passage)) for _, passage in batch]
        lengths = [len(each) for each in tokens]
        flat = np.array([self._vocabulary[word] for each in tokens for word in each], dtype=np.int64)
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
        make = _in_memory if folder is None else partial(_on_disk, folder)
        starts = make("starts", np.int64, len(self._vocabulary) + 1)
        frequencies = np.zeros(len(self._vocabulary), dtype=np.int64)
        for found, _, _ in self._blocks():
            frequencies += np.bincount(found, minlength=len(frequencies))
        starts[0] = 0
        np.cumsum(frequencies, out=starts[1:])
        weights, passages = make("weights", np.float32, starts[-1]), make("passages", np.int32, starts[-1])
        self._scatter(weights, passages, frequencies, starts[:-1].copy())
        rowids = make("rowids", np.int64, len(self.rowids))
        rowids[:] = np.asarray(self.rowids)
        if folder is not None:
            (folder / _VOCABULARY).write_text(json.dumps(list(self._vocabulary)), encoding="utf-8")
        return Postings(dict(self._vocabulary), *map(np.asarray, (weights, passages, starts, rowids)))

    def _scatter(self, weights: np.ndarray, passages: np.ndarray, frequencies: np.ndarray, heads: np.ndarray) -> None:
        """Puts every posting in its place; heads: int64 [words], where the next posting of a word goes."""
        idf = np.log(1 + (len(self.rowids) - frequencies + 0.5) / (frequencies + 0.5))
        lengths = np.asarray(self._lengths)
        norms = K1 * (1 - B + B * lengths / max(1.0, lengths.mean())) if len(lengths) else lengths
        for found, positions, counts in self._blocks():
            distinct, begins, sizes = np.unique(found, return_index=True, return_counts=True)
            places = np.arange(len(found)) + np.repeat(heads[distinct] - begins, sizes)
            passages[places] = positions
            weights[places] = idf[found] * counts / (counts + norms[positions])
            heads[distinct] += sizes

    def _blocks(self) -> Iterator[np.ndarray]:
        """Per batch int32 [3, postings]: words, passages, counts."""
        self._spool.seek(0)
        for size in self._sizes:
            yield np.frombuffer(self._spool.read(12 * size), dtype=np.int32).reshape(3, size)


def _in_memory(_: str, dtype: Any, size: int) -> np.ndarray:
    return np.empty(size, dtype)


def _on_disk(folder: Path, name: str, dtype: Any, size: int) -> np.ndarray:
    path = folder / f"{name}.npy"
    mapped = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(int(size),))
    # A mapped file gets its room when it is written to, and a full disk then kills the process: ask for it now.
    with path.open("r+b") as file:
        os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return mapped
