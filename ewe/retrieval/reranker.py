"""A second look at the best passages by a model that reads query and passage together."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ewe.errors import ConfigError
from ewe.lazy import warm
from ewe.protocols import Retriever
from ewe.retrieval.encoders import SentenceModel, clean, count_tokens
from ewe.retrieval.source import searched_text
from ewe.types import ScoredPassage

_DEPTH = 50


class CrossEncoderScorer:
    """A cross-encoder with one output, by folder or hub id; scores are its sigmoids, in [0, 1].

    Pairs beyond max_tokens, the model's length, are cut. The model is loaded when it is first needed, its folder
    checked at once; a hub id is loaded at once. Only safetensors weights are read, and no code of the model's is run.
    Safe to call from several threads, one at a time. Raises ConfigError if the model cannot be loaded or has several
    outputs.
    """

    def __init__(self, name: str | Path, device: str | None = None, batch_size: int = 32) -> None:
        self.name = str(name)
        self._model = SentenceModel("CrossEncoder", self.name, device)
        labels = self._model.config().get("id2label")
        if labels is not None:
            self._check_outputs(len(labels))
        self._batch_size = batch_size
        self._lock = threading.Lock()

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs] in [0, 1]."""
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        with self._lock:
            logits = self._loaded().predict(
                [(clean(query), clean(passage)) for query, passage in pairs],
                batch_size=self._batch_size,
                show_progress_bar=False,
                activation_fn=_identity,
                convert_to_numpy=True,
            )
        return (1 / (1 + np.exp(-np.asarray(logits, dtype=np.float64)))).astype(np.float32)

    @property
    def max_tokens(self) -> int | None:
        """The tokens that the model reads of a pair; None: all."""
        most: int | None = self._loaded().max_seq_length
        return most

    def count_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """The tokens of each pair, before it is cut."""
        with self._lock:
            return count_tokens(self._loaded(), [(clean(query), clean(passage)) for query, passage in pairs])

    def warm(self) -> None:
        """Loads the model."""
        self._loaded()

    def _loaded(self) -> Any:
        model = self._model.get()
        self._check_outputs(model.num_labels)
        return model

    def _check_outputs(self, count: int) -> None:
        if count != 1:
            raise ConfigError(f"the reranker {self.name!r} has {count} outputs: name one with a single one")


class Reranked:
    """A retriever whose first `depth` passages are put in the order of a cross-encoder; equal scores keep theirs.

    Scores are the cross-encoder's: they can be compared across queries.
    """

    def __init__(self, retriever: Retriever, scorer: CrossEncoderScorer, depth: int = _DEPTH) -> None:
        self.retriever, self.scorer, self._depth = retriever, scorer, depth
        found = getattr(retriever, "description", type(retriever).__name__)
        self.description = f"{found}, reranked by {Path(scorer.name).name}"

    def warm(self) -> None:
        """Loads what the retriever and the scorer need."""
        warm(self.retriever)
        warm(self.scorer)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first."""
        found = self.retriever.retrieve(queries, max(top_k, self._depth))
        pairs = [
            (query, searched_text(scored.passage)) for query, row in zip(queries, found, strict=True) for scored in row
        ]
        scores = iter(self.scorer.score(pairs))
        rescored = [[ScoredPassage(scored.passage, float(next(scores))) for scored in row] for row in found]
        return [sorted(row, key=lambda scored: -scored.score)[:top_k] for row in rescored]


def _identity(logits: Any) -> Any:
    return logits
