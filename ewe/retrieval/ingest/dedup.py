"""Leaving out passages that are in the store already, word for word or nearly so (MinHash).

Two passages are near-duplicates if they share their telling words (the title, numbers, words with a capital, words
that deny) and at least 0.8 of their runs of three words (Jaccard). So a passage that differs in a name, a number or a
"not" is never taken for a duplicate: to whoever checks facts, that difference is the point.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from ewe.retrieval.store import PassageStore
from ewe.text.english import words_of
from ewe.text.words import fold

if TYPE_CHECKING:
    from ewe.retrieval.ingest.work import Prepared


SIMILAR = 0.8
_BANDS, _ROWS = 8, 6  # a pair of similarity 0.8 meets with probability 0.91, of 0.9 with 0.998
# A number with its sign, currency and per cent, or a word.
_WORD = re.compile(r"[-−+<>=~$€£]{0,2}\d+(?:[.,]\d+)*%?|[^\W\d_]+(?:['’][^\W\d_]+)*")
_DENYING = words_of("not no never none neither nor without cannot nobody nothing hardly false")


def _constants(name: str) -> np.ndarray:
    """uint64 [bands * rows] that are the same for ever, as keys made from them are kept on disk."""
    numbers = range(_BANDS * _ROWS)
    digests = [hashlib.blake2b(f"{name} {number}".encode(), digest_size=8).digest() for number in numbers]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
_FACTORS, _OFFSETS = _constants("factor") | np.uint64(1), _constants("offset")


def exact_key(title: str, text: str) -> int:
    """A signed 64-bit key; equal for passages that differ in case, accents and white space only."""
    return _key("exact", normalized(title), normalized(text))


def near_keys(title: str, text: str) -> list[int]:
    """Eight keys; near-duplicates share at least one of them, nearly always (MinHash, in bands)."""
    telling = " ".join(sorted(_telling(text)))
    bands = _signature(_run_hashes(text)).reshape(_BANDS, _ROWS)
    return [
        _key(f"band {number}", normalized(title), telling, band.tobytes().hex()) for number, band in enumerate(bands)
    ]


def are_similar(text: str, other: str) -> bool:
    """Whether two texts share at least 0.8 of their runs of three words."""
    first, second = set(_run_hashes(text).tolist()), set(_run_hashes(other).tolist())
    return len(first & second) >= SIMILAR * len(first | second)


def normalized(text: str) -> str:
    """The text folded, with single spaces."""
    return " ".join(fold(text).split())


def _telling(text: str) -> set[str]:
    """The words that a duplicate must share: numbers, words with a capital, words that deny."""
    matches = _WORD.findall(text)
    return {fold(word) for word in matches if not word.islower() or word in _DENYING or word.endswith(("n't", "n’t"))}


def _run_hashes(text: str) -> np.ndarray:
    """uint64 [runs]: a hash of every run of three words, each once; a shorter text is one run."""
    words = _WORD.findall(fold(text))
    hashes = np.array([crc32(word.encode("utf-8", "replace")) for word in words] or [0], dtype=np.uint64)
    if len(hashes) >= 3:
        hashes = (hashes[:-2] * _MIX[0] + hashes[1:-1]) * _MIX[1] + hashes[2:]
    runs: np.ndarray = np.unique(hashes)
    return runs


def _signature(hashes: np.ndarray) -> np.ndarray:
    """uint32 [bands * rows]: per hash function (multiply, add, keep the upper half) the least value over the runs."""
    mixed = (hashes[None, :] * _FACTORS[:, None] + _OFFSETS[:, None]) >> np.uint64(32)
    signature: np.ndarray = mixed.min(axis=1).astype("<u4")
    return signature


def _key(*parts: str) -> int:
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).digest()
    return int(struct.unpack("<q", digest)[0])


# Passages are held by number, which no later passage gets: what was removed is simply no longer found.
_TABLE = (
    "CREATE TABLE IF NOT EXISTS ingest_keys (key INTEGER, passage INTEGER, PRIMARY KEY (key, passage)) WITHOUT ROWID"
)
_COMPARED = 16  # passages under one key that are compared; more of them under one key say the same anyway


class Deduplicator:
    """Finds the passages to come that duplicate what is there, or each other. Use inside a transaction."""

    def __init__(self, store: PassageStore) -> None:
        self._store = store
        with store.transaction() as connection:
            connection.execute(_TABLE)

    def unique(self, prepared: Sequence[Prepared]) -> list[Prepared]:
        """Those that duplicate nothing, in order; of several duplicates the first stays."""
        there = self._stored(key for item in prepared for key in item.keys)
        kept = []
        for item in prepared:
            seen = [text for key in item.keys for text in there[key][:_COMPARED]]
            if not any(_same(item, text) for text in dict.fromkeys(seen)):
                kept.append(item)
                for key in item.keys:
                    there[key].append(item.passage.text)
        return kept

    def remember(self, rows: Iterable[tuple[int, Prepared]]) -> None:
        """Makes passages known that are now in the store, with their row numbers."""
        with self._store.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO ingest_keys VALUES (?, ?)",
                ((key, row) for row, item in rows for key in item.keys),
            )

    def _stored(self, keys: Iterable[int]) -> defaultdict[int, list[str]]:
        distinct = list(dict.fromkeys(keys))
        pairs = self._store.lookup("SELECT key, passage FROM ingest_keys WHERE key IN", distinct)
        rows = sorted({row for _, row in pairs})
        texts = dict(self._store.lookup("SELECT rowid, text FROM passages WHERE rowid IN", rows))
        stored: defaultdict[int, list[str]] = defaultdict(list)
        for key, row in sorted(pairs):
            if row in texts:
                stored[key].append(texts[row])
        return stored


def _same(item: Prepared, text: str) -> bool:
    """Whether a passage that shares a key with another of this text duplicates it."""
    if normalized(item.passage.text) == normalized(text):
        return True
    return len(item.keys) > 1 and are_similar(item.passage.text, text)
