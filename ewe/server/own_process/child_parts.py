"""Verifiers and models of retrieval in the engine's process, as the other process asks for them by `remote_parts`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ewe.errors import JudgeError
from ewe.server.engine_client.served_models import SentenceModels, ServedEncoder, ServedReranker
from ewe.server.engine_client.text_verifiers import OwnTextVerifiers
from ewe.server.own_process import engine_messages as wire
from ewe.server.own_process.opening import Opening


class ChildVerifiers:
    """The engine's own verifier, and those of documents, which are kept by numbers until they are closed."""

    def __init__(self, verifiers: OwnTextVerifiers) -> None:
        self._verifiers = verifiers
        self._against: dict[int, Opening] = {}
        self._numbers = itertools.count()

    @property
    def has_own(self) -> bool:
        """Whether the engine has one of its own."""
        return self._verifiers.has_own

    @property
    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What answers to the names of calls."""
        return {"open documents": self._open, "index part": self._go_on, "verify": self._verify}

    def close(self, number: int) -> None:
        """Forgets the documents that have this number."""
        opening = self._against.pop(number, None)
        if opening is not None:
            opening.close()

    def _open(self, documents: Any, in_parts: bool) -> int:
        """The number under which a verifier of these documents is kept; in_parts: it is made by calls of `_go_on`."""
        opening = Opening(partial(self._verifiers.against, wire.PASSAGES.read(documents)), in_parts)
        if not in_parts:
            opening.verifier()
        number = next(self._numbers)
        self._against[number] = opening
        return number

    def _go_on(self, number: int) -> bool:
        """Whether that was the last part of the making."""
        return self._opened(number).go_on()

    def _verify(self, documents: int | None, requests: Any) -> Any:
        verifier = self._verifiers.own() if documents is None else self._opened(documents).verifier()
        if verifier is None:  # without a verifier of its own nobody asks
            raise JudgeError("the engine has no verifier")
        return wire.CHECKED.plain(verifier.verify(wire.CHECKS.read(requests)))

    def _opened(self, number: int) -> Opening:
        opening = self._against.get(number)
        if opening is None:
            raise JudgeError("the documents have been closed")
        return opening


class ChildSentenceModels:
    """The encoder and the reranker of the engine's retrieval."""

    def __init__(self, models: SentenceModels) -> None:
        self._models = models

    @property
    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What answers to the names of calls."""
        return {
            "model": self._facts,
            "count_tokens": lambda task, texts: self._model(task).count_tokens(_pairs(texts)),
            "encode": self._encode,
            "score": lambda pairs: self._models.reranker().score(_pairs(pairs)).tolist(),
        }

    def _model(self, task: str) -> ServedEncoder | ServedReranker:
        return self._models.encoder() if task == "embed" else self._models.reranker()

    def _facts(self, task: str) -> Any:
        model = self._model(task)
        return wire.MODEL_FACTS.plain(wire.ModelFacts(model.name, model.max_tokens, getattr(model, "dimension", 0)))

    def _encode(self, texts: list[str], is_query: bool) -> list[list[float]]:
        encoder = self._models.encoder()
        vectors: list[list[float]] = (encoder.encode_queries if is_query else encoder.encode_passages)(texts).tolist()
        return vectors


def _pairs(texts: list[Any]) -> list[Any]:
    """Texts as they are, pairs of texts as tuples again."""
    return [tuple(item) if isinstance(item, list) else item for item in texts]
