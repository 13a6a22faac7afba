"""A second look at the best passages by a model that reads query and passage together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ewe.config.lazy import warm
from ewe.errors import ConfigError
from ewe.retrieval.encoders import SentenceModel, clean
from ewe.retrieval.source import describe, searched_text
from ewe.types import ScoredPassage
from ewe.types.protocols import Retriever

_DEPTH = 50


class CrossEncoderScorer(SentenceModel):
    """A cross-encoder with one output; scores are its sigmoids, in [0, 1]. Raises ConfigError for several outputs."""

    def __init__(self, name: str | Path, device: str | None = None) -> None:
        self.name = str(name)
        super().__init__("CrossEncoder", self.name, device)
        labels = self.config().get("id2label")
        if labels is not None:
            self._check_outputs(len(labels))

    def get(self) -> Any:
        """The model, checked."""
        model = super().get()
        self._check_outputs(model.num_labels)
        return model

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs] in [0, 1]."""
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        with self._calls:
            logits = self.get().predict(
                [(clean(query), clean(passage)) for query, passage in pairs],
                show_progress_bar=False,
                activation_fn=lambda logits: logits,
                convert_to_numpy=True,
            )
        return (1 / (1 + np.exp(-np.asarray(logits, dtype=np.float64)))).astype(np.float32)

    def _check_outputs(self, count: int) -> None:
        if count != 1:
            raise ConfigError(f"the reranker {self.name!r} has {count} outputs: name one with a single one")


class Reranked:
    """A retriever whose first `depth` passages are put in the order of a cross-encoder; equal scores keep theirs.

    Scores are the cross-encoder's: they can be compared across queries.
    """

    def __init__(self, retriever: Retriever, scorer: CrossEncoderScorer, depth: int = _DEPTH) -> None:
        self.retriever, self.scorer, self._depth = retriever, scorer, depth
        self.description = f"{describe(retriever)}, reranked by {Path(scorer.name).name}"

    def warm(self) -> None:
        """Loads what the retriever and the scorer need."""
        warm(self.retriever)
        warm(self.scorer)

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages, best first."""
        candidates = self.retriever.retrieve(queries, max(top_k, self._depth))
        pairs = [
            (query, searched_text(scored.passage))
            for query, row in zip(queries, candidates, strict=True)
            for scored in row
        ]
        scores = iter(self.scorer.score(pairs))
        rescored = [[ScoredPassage(scored.passage, float(next(scores))) for scored in row] for row in candidates]
        return [sorted(row, key=lambda scored: -scored.score)[:top_k] for row in rescored]
