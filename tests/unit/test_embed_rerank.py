"""Texts to embed and pairs to rerank are read in parts of their request's work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from ewe.server.openai.embed_rerank import _BATCH, _encode, _score
from ewe.server.request_handling.thread_work import Cancellation
from ewe.server.schemas.embed_rerank_schemas import EmbeddingRequest, RerankRequest


class Rig:
    """A turn, the models and their retrieval at once; notes how many texts were read in each part, and outside."""

    max_tokens, dimension, name = 100, 1, "model"

    def __init__(self) -> None:
        self.parts: list[int] = []
        self.inside = False

    def in_parts(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.inside = True
            try:
                yield item
            finally:
                self.inside = False

    def encoder(self) -> Rig:
        return self

    reranker = encoder

    def count_tokens(self, texts: Sequence[Any]) -> list[int]:
        assert self.inside
        return [1] * len(texts)

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        assert self.inside
        self.parts.append(len(texts))
        if "bad" in texts:
            raise RuntimeError("it fails")
        return np.ones((len(texts), 1), dtype=np.float32)

    def score(self, pairs: Sequence[Any]) -> np.ndarray:
        return self.encode_passages([text for _, text in pairs])[:, 0]


def test_each_batch_is_a_part() -> None:
    rig: Any = Rig()
    vectors, tokens = _encode(rig, EmbeddingRequest(input=["a"] * 70), rig, Cancellation())
    scores, pairs = _score(rig, RerankRequest(query="b", documents=["a"] * 70), rig, Cancellation())
    assert (len(vectors), tokens, len(scores), pairs) == (70, 70, 70, 70)
    assert rig.parts == [_BATCH, _BATCH, 70 - 2 * _BATCH] * 2


def test_a_part_that_fails_is_over_while_its_failure_is_told() -> None:
    rig: Any = Rig()
    with pytest.raises(RuntimeError) as kept:
        _encode(rig, EmbeddingRequest(input=["a", "bad"]), rig, Cancellation())
    assert not rig.inside, kept.value
