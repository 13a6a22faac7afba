"""Verifiers and models of retrieval that are in the engine's process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import numpy as np

from ewe.errors import EngineDeadError
from ewe.server.engine_client.served_models import SentenceTask
from ewe.server.engine_client.text_verifiers import InParts
from ewe.server.own_process import engine_messages as wire
from ewe.types import Passage, VerificationRequest, VerificationResult


class Call(Protocol):
    """Asks the engine's process, waits, and raises what that raised, or EngineDeadError."""

    def __call__(self, name: str, **arguments: Any) -> Any:
        """What it answers."""
        ...


Tell = Callable[[Mapping[str, Any]], None]
"""Tells the engine's process something that it does not answer; raises EngineDeadError."""


class RemoteVerifier:
    """Checks sentences; documents: the number of those against which alone, None for the engine's own verifier."""

    def __init__(self, call: Call, tell: Tell, documents: int | None = None) -> None:
        self._call, self._tell, self._documents = call, tell, documents

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """What it says; raises JudgeError if it fails or does not answer in time."""
        checks = wire.CHECKS.plain(list(requests))
        return wire.CHECKED.read(self._call("verify", documents=self._documents, requests=checks))

    def close(self) -> None:
        """Has the engine's process forget the documents; the engine's own verifier goes on."""
        if self._documents is not None:
            with suppress(EngineDeadError):
                self._tell({"do": "close documents", "number": self._documents})


class RemoteVerifiers:
    """The verifiers of the engine. has_own: whether it has one of its own."""

    def __init__(self, call: Call, tell: Tell, has_own: bool) -> None:
        self._call, self._tell, self._has_own = call, tell, has_own

    def own(self) -> RemoteVerifier | None:
        """The engine's; None if it has none."""
        return RemoteVerifier(self._call, self._tell) if self._has_own else None

    def against(self, documents: Sequence[Passage], in_parts: InParts = iter) -> RemoteVerifier:
        """A verifier that looks into these documents alone, which are sent and indexed once."""
        paced = in_parts is not iter  # else it takes one call
        number = self._call("open documents", documents=wire.PASSAGES.plain(list(documents)), in_parts=paced)
        verifier = RemoteVerifier(self._call, self._tell, number)
        if paced:
            try:
                for _ in in_parts(iter(partial(self._call, "index part", number=number), True)):
                    pass
            except BaseException:
                verifier.close()
                raise
        return verifier

    def close(self) -> None:
        """Nothing is held here."""


class RemoteModel:
    """A model of retrieval; raises RefusedError if the engine has none for this task, or cannot load it."""

    def __init__(self, call: Call, task: SentenceTask) -> None:
        facts = wire.MODEL_FACTS.read(call("model", task=task))
        self._call, self._task = call, task
        self.name, self.max_tokens, self.dimension = facts.name, facts.max_tokens, facts.dimension

    def count_tokens(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[int]:
        """The tokens of each text or pair of texts, before anything is cut."""
        counts: list[int] = self._call("count_tokens", task=self._task, texts=list(texts))
        return counts

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        return self._encode(texts, is_query=True)

    def encode_passages(self, texts: Sequence[str]) -> np.ndarray:
        """float32 [texts, dimension]."""
        return self._encode(texts, is_query=False)

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """float32 [pairs] in [0, 1]."""
        return np.asarray(self._call("score", pairs=list(pairs)), dtype=np.float32)

    def _encode(self, texts: Sequence[str], is_query: bool) -> np.ndarray:
        vectors = self._call("encode", texts=list(texts), is_query=is_query)
        return np.asarray(vectors, dtype=np.float32).reshape(len(texts), self.dimension)


class RemoteSentenceModels:
    """The models of the engine's retrieval. listed: what each does, by its name."""

    def __init__(self, call: Call, listed: Mapping[str, SentenceTask]) -> None:
        self._call, self.listed = call, listed

    def encoder(self) -> RemoteModel:
        """The encoder; raises RefusedError where there is none, or one that cannot be loaded."""
        return RemoteModel(self._call, "embed")

    def reranker(self) -> RemoteModel:
        """The reranker; raises RefusedError where there is none, or one that cannot be loaded."""
        return RemoteModel(self._call, "rerank")
