"""Verifiers and models of retrieval in the engine's process, as the other process asks for them by `remote_parts`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ewe.errors import JudgeError
from ewe.server.own_process import engine_messages as wire
from ewe.server.served_models import SentenceModels, ServedEncoder, ServedReranker
from ewe.server.text_verifiers import OwnTextVerifiers, TimedVerifier


class ChildVerifiers:
    """The engine's own verifier, and those of documents, which are kept by numbers until they are closed."""

    def __init__(self, verifiers: OwnTextVerifiers) -> None:
        self._verifiers = verifiers
        self._against: dict[int, TimedVerifier] = {}
        self._numbers = itertools.count()

    @property
    def has_own(self) -> bool:
        """Whether the engine has one of its own."""
        return self._verifiers.has_own

    @property
    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What answers to the names of calls."""
        return {"open documents": self._open, "verify": self._verify}

    def close(self, number: int) -> None:
        """Forgets the documents that have this number."""
        verifier = self._against.pop(number, None)
        if verifier is not None:
            verifier.close()

    def _open(self, documents: Any) -> int:
        """The number under which a verifier of these documents is kept."""
        verifier, number = self._verifiers.against(wire.PASSAGES.read(documents)), next(self._numbers)
        self._against[number] = verifier
        return number

    def _verify(self, documents: int | None, requests: Any) -> Any:
        verifier = self._verifiers.own() if documents is None else self._against.get(documents)
        if verifier is None:  # of documents that were closed meanwhile; without a verifier of its own nobody asks
            raise JudgeError("the documents have been closed")
        return wire.CHECKED.plain(verifier.verify(wire.CHECKS.read(requests)))


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
