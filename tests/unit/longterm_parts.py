"""Parts that tests of long-term memory share: an encoder of words, a judge of years, stores that wait for no disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ewe.longterm.records import Memory, Scope
from ewe.longterm.store import MemoryStore
from ewe.text.words import words

SHARED = Scope()


class WordEncoder:
    """Unit vectors with a place for every word, so that texts which share words lie close."""

    def __init__(self, name: str = "words", dimension: int = 24, sign: float = 1.0) -> None:
        self.name, self.dimension, self._sign = name, dimension, sign
        self.encoded: list[str] = []

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        self.encoded += texts
        return self.encode_queries(texts)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                digest = hashlib.sha256(f"{self.name} {word}".encode()).digest()
                vectors[row, digest[0] % self.dimension] += self._sign
            vectors[row, digest_place(self.name, self.dimension)] += 0.1
            vectors[row] /= np.linalg.norm(vectors[row])
        return vectors


def digest_place(name: str, dimension: int) -> int:
    """A place that every vector of an encoder has something at, so that none is zero."""
    return hashlib.sha256(name.encode()).digest()[0] % dimension


class YearJudge:
    """Texts that end in the same year support each other, other years refute, texts without a year say nothing."""

    def judge(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        rows = []
        for evidence, claim in pairs:
            years = [text.split()[-1] for text in (evidence, claim)]
            open_row = not all(year.isdigit() for year in years)
            rows.append((0, 0, 1) if open_row else (0.95, 0, 0.05) if years[0] == years[1] else (0, 0.95, 0.05))
        return np.array(rows, dtype=np.float32).reshape(-1, 3)


def new_store(path: Path | str) -> MemoryStore:
    """A store that does not wait for the disk."""
    return quick(MemoryStore.create(path))


def quick(store: MemoryStore) -> MemoryStore:
    """The store, which no longer waits for the disk; the tests' server never does."""
    if isinstance(store.path, Path):
        store._session.query("PRAGMA synchronous = OFF")
    return store


def impatient(store: MemoryStore) -> MemoryStore:
    """The store, which no longer waits for others' locks."""
    store._session.query("PRAGMA busy_timeout = 50" if isinstance(store.path, Path) else "SET lock_timeout = 50")
    return store


def raw(store: MemoryStore, statement: str) -> list[tuple[Any, ...]]:
    """What a statement finds for whoever runs the store."""
    with store.seeing(None):
        return store._session.query(statement)


def memories(count: int, scope: Scope = SHARED, first: int = 0) -> list[Memory]:
    """Memories m0, m1, ... that share the word "memory" and have one word of their own."""
    return [
        Memory(f"m{i}", f"memory of word{i}", scope=scope, created_at=float(i), updated_at=float(i))
        for i in range(first, first + count)
    ]
