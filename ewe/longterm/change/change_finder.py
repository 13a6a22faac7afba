"""Which older statements a newer one may change: vectors of their words, which need no model to run.

A statement's vector is the weighted sum of its word pieces' vectors in the built-in judge, through one of two
matrices: one for older statements, one for newer ones. They were trained so that "We have no pets" and "The puppy
chewed my shoes" are close (`scripts/train_change_reader.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ewe.config.lazy import Lazy
from ewe.longterm.change.change_reading import MODEL
from ewe.verification.judges.checkpoints import builtin_path

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_WORDS = "bert.embeddings.word_embeddings.weight"
_MOST_PIECES = 96


class StatementFinder:
    """The vectors, float32 [dimension]; weights: float32 [vocabulary, dimension] per side, of each word piece."""

    def __init__(self, tokenizer: Tokenizer, older: NDArray[np.float32], newer: NDArray[np.float32]) -> None:
        self._tokenizer, self.dimension = tokenizer, older.shape[1]
        self.older, self.newer = (lru_cache(1 << 14)(partial(self._vector, side)) for side in (older, newer))

    @classmethod
    def load(cls) -> StatementFinder:
        """That of the package."""
        from safetensors.numpy import load_file

        trained = load_file(MODEL / "finder.safetensors")
        tokenizer, words = judge_words(builtin_path())
        words = words * trained["weights"].astype(np.float32)[:, None]
        older, newer = (words @ trained[side].astype(np.float32) for side in ("older", "newer"))
        return cls(tokenizer, older, newer)

    def closeness(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Of pairs of an older and a newer statement: cosines float32 [pairs]; at least one pair."""
        older = np.stack([self.older(text) for text, _ in pairs])
        close: NDArray[np.float32] = np.einsum("ij,ij->i", older, np.stack([self.newer(text) for _, text in pairs]))
        return close

    def _vector(self, weights: NDArray[np.float32], text: str) -> NDArray[np.float32]:
        total: NDArray[np.float32] = weights[pieces_of(self._tokenizer, text)].sum(0)
        return total / np.float32(max(float(np.linalg.norm(total)), 1e-6))


def judge_words(judge: Path) -> tuple[Tokenizer, NDArray[np.float32]]:
    """The tokenizer of a judge in this folder, and the vectors of its word pieces about their mean, float32."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights = load_file(judge / "model.safetensors")
    words = weights[_WORDS].astype(np.float32) * weights[f"{_WORDS}.scale"][:, None]
    tokenizer = Tokenizer.from_file(str(judge / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, words - words.mean(0)


def pieces_of(tokenizer: Tokenizer, text: str) -> list[int]:
    """The numbers of the word pieces that are read of a statement."""
    return list(tokenizer.encode(text, add_special_tokens=False).ids[:_MOST_PIECES])


finder = Lazy(StatementFinder.load)
"""Loaded when it is first needed."""
