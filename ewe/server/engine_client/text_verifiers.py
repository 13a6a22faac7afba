"""Verifiers for texts that are finished: the engine's own, or one that looks into documents of a request."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Protocol

from ewe.components import Components, open_checker
from ewe.config import Config
from ewe.config.lazy import warm
from ewe.engine.evidence import workers
from ewe.engine.evidence.workers import Worker
from ewe.errors import JudgeError
from ewe.retrieval.bm25 import BM25Retriever
from ewe.retrieval.datastore import Datastore, PassageList
from ewe.server.engine_client.document_pieces import WholeDocuments, pieces_of
from ewe.types import Passage, VerificationRequest, VerificationResult
from ewe.types.protocols import Retriever, Verifier
from ewe.verification.claim_verifier import ClaimVerifier

InParts = Callable[[Iterable[Any]], Iterable[Any]]
"""Gives the same items; whoever makes it may have a rest before each."""

_INDEXED_AT_ONCE = 4  # pieces of documents: some milliseconds


class TimedVerifier:
    """A verifier whose calls end in time: one that takes longer is left behind, and the call raises JudgeError."""

    def __init__(self, verifier: Verifier, timeout_s: float) -> None:
        self._verifier, self._timeout_s = verifier, timeout_s
        self._worker = Worker("verification", partial(workers.verify, verifier), wake=lambda: None)

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """What the verifier says; raises JudgeError if it fails or does not answer in time.

        The first call also waits for what the verifier has to load.
        """
        with suppress(Exception):  # the worker meets it again, and tells of it as a failure
            warm(self._verifier)
        answered = threading.Event()
        job = self._worker.submit(list(requests), self._timeout_s, answered.set)
        while not answered.wait(max(0.001, job.deadline - time.monotonic())):
            self._worker.abandon_overdue(time.monotonic())
        if job.error:
            raise JudgeError(job.error)
        results: list[VerificationResult] = job.result
        return results

    def close(self) -> None:
        """Ends the thread after the call it is in; calls under way fail."""
        self._worker.close()


class TextVerifier(Protocol):
    """Checks sentences of finished texts."""

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        """What it says; raises JudgeError if it fails or does not answer in time."""
        ...

    def close(self) -> None:
        """Ends what it does; calls under way fail."""
        ...


class TextVerifiers(Protocol):
    """The verifiers of one engine, for texts that are finished."""

    def own(self) -> TextVerifier | None:
        """The engine's verifier, else one that looks into its datastore; None if it has neither. Raises JudgeError."""
        ...

    def against(self, documents: Sequence[Passage], in_parts: InParts = iter) -> TextVerifier:
        """A verifier that looks into these documents alone, to be closed by the caller. Raises JudgeError.

        in_parts: around what is looked through to index them, where that is in this process.
        """
        ...

    def close(self) -> None:
        """Ends the checks under way."""
        ...


class OwnTextVerifiers:
    """Those of an engine in this process. Judges are loaded when first needed."""

    def __init__(self, config: Config, components: Components) -> None:
        self._config = config
        self._components = components
        self._own: TimedVerifier | None = None
        self._made = components.verifier
        self._making = threading.Lock()

    @property
    def has_own(self) -> bool:
        """Whether `own` gives a verifier; nothing is loaded for it."""
        return self._components.verifier is not None or self._components.retriever is not None

    def own(self) -> TimedVerifier | None:
        """The engine's verifier, else one that looks into its datastore; None if it has neither. Raises JudgeError."""
        with self._making:
            if self._own is None:
                verifier, retriever = self._components.verifier, self._components.retriever
                if verifier is None and retriever is not None:
                    verifier = self._over(retriever, self._config.feedback.closed_world)
                if verifier is not None:
                    self._own = TimedVerifier(verifier, self._config.feedback.timeout)
            return self._own

    def against(self, documents: Sequence[Passage], in_parts: InParts = iter) -> TimedVerifier:
        """A verifier that looks into these documents alone, to be closed by the caller.

        What they do not tell stays open, whatever the settings say of the datastore, unless a request has it otherwise.
        Raises JudgeError.
        """
        pieces = chain.from_iterable(map(pieces_of, Datastore(documents).passages))
        retriever = BM25Retriever(_ReadInParts(pieces, in_parts), batch=_INDEXED_AT_ONCE)
        with self._making:
            verifier = self._over(retriever, is_complete=False)
        return TimedVerifier(WholeDocuments(verifier, documents), self._config.feedback.timeout)

    def close(self) -> None:
        """Ends the checks under way."""
        if self._own is not None:
            self._own.close()

    def _over(self, retriever: Retriever, is_complete: bool) -> Verifier:
        """A verifier over these passages; is_complete: whether they tell everything. All share one judge."""
        if isinstance(self._made, ClaimVerifier):
            return self._made.over(retriever, is_complete)
        config = self._config
        if config.verifier == "builtin":  # it reads the built-in world only, and whatever is asked about is none of it
            config = config.model_copy(update={"verifier": "claims"})
        self._made = open_checker(config, retriever, is_complete)
        return self._made


class _ReadInParts(PassageList):
    """Passages that are read for an index in parts."""

    def __init__(self, passages: Iterable[Passage], in_parts: InParts) -> None:
        super().__init__(passages)
        self._in_parts = in_parts

    def scan(self, after_rowid: int = 0) -> Iterator[tuple[int, Passage]]:
        """As of any list."""
        yield from self._in_parts(super().scan(after_rowid))
