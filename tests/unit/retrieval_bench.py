"""What the retrievers' tests share: an encoder without weights, a fixed retriever, made-up passages."""

import hashlib
import random

import numpy as np
import pytest

from ewe.retrieval import open_retriever as opening
from ewe.text.words import words
from ewe.types import Passage, ScoredPassage


class HashEncoder:
    """The sum of one fixed random vector per word, at unit length: texts that share words are close."""

    def __init__(self, name="hash", dimension=32, salt="", prefix=""):
        self.name, self.dimension, self.salt, self.prefix = name, dimension, salt, prefix
        self._words = {}
        self.encoded = []  # passages, in the order in which they were encoded
        self.fail_after = None

    def encode_queries(self, texts):
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)

    def encode_passages(self, texts):
        if self.fail_after is not None and len(self.encoded) >= self.fail_after:
            raise KeyboardInterrupt
        self.encoded += texts
        return self.encode_queries([self.prefix + text for text in texts])

    def _vector(self, text):
        total = np.full(self.dimension, 1e-3)
        for word in words(text):
            if word not in self._words:
                seed = int.from_bytes(hashlib.blake2b(f"{self.salt}{word}".encode(), digest_size=4).digest(), "little")
                self._words[word] = np.random.default_rng(seed).standard_normal(self.dimension)
            total = total + self._words[word]
        return total / np.linalg.norm(total)


def installed_encoder(monkeypatch):
    """Has `open_retriever` find an encoder without weights, which is returned."""
    pytest.importorskip("faiss", reason="dense retrieval needs the extra 'dense'")
    made = HashEncoder(name="all-MiniLM-L6-v2")
    monkeypatch.setattr(opening, "SentenceEncoder", lambda *_: made)
    monkeypatch.setattr(opening, "builtin_encoder_path", lambda: "there")
    monkeypatch.setattr(opening, "find_spec", lambda _: "there")
    return made


class FixedRetriever:
    """Returns the passages it was given, with scores that fall from the first to the last; counts its calls."""

    def __init__(self, passages, scores=None):
        scores = scores or [float(len(passages) - place) for place in range(len(passages))]
        self.ranking = [ScoredPassage(*pair) for pair in zip(passages, scores, strict=True)]
        self.depths = []

    def retrieve(self, queries, top_k):
        self.depths.append(top_k)
        return [self.ranking[:top_k] for _ in queries]


def made_up_passages(count, seed=0, vocabulary=300):
    """Passages of a few to many words, all different; frequent words are much more frequent than rare ones."""
    rng = random.Random(seed)
    passages = []
    for number in range(count):
        chosen = [f"w{int(vocabulary * rng.random() ** 3)}" for _ in range(rng.randint(3, 40))]
        passages.append(Passage(f"p{number}", " ".join(chosen), f"t{number % 7}", source=f"s{number % 5}"))
    return passages


def ids(results):
    return [[scored.passage.id for scored in row] for row in results]
