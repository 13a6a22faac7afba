"""Retrieval and verification outside the loop's thread, batched across sequences, with their answers checked."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from numbers import Real
from typing import Any

from ewe.types import Claim, Evidence, Passage, Query, ScoredPassage, Verdict, VerificationRequest, VerificationResult
from ewe.types.protocols import Memories, Retriever, Verifier

BatchCall = Callable[[list[Any]], Sequence[Any]]


@dataclass(slots=True, eq=False)
class Job:
    """One call under way. `result` or `error` holds once `done` is true; times are of time.monotonic, in seconds.

    on_done: called once it is, by whichever thread settles it, so it must not wait.
    """

    payload: Any
    timeout_s: float
    on_done: Callable[[], object] | None = None
    submitted: float = field(default_factory=time.monotonic)
    finished: float = 0.0
    result: Any = None
    error: str = ""
    done: bool = False

    @property
    def deadline(self) -> float:
        """When the answer comes too late."""
        return self.submitted + self.timeout_s

    @property
    def latency_s(self) -> float:
        """Seconds from submission to the answer."""
        return self.finished - self.submitted

    def settle(self, result: Any = None, error: str = "") -> None:
        """Records the answer; the first one counts."""
        if self.done:
            return
        self.result, self.error, self.finished = result, error, time.monotonic()
        self.done = True
        if self.on_done is not None:
            self.on_done()


class Worker:
    """Runs one component: whatever has queued up while it was busy becomes its next batch.

    call: one result per payload, in order; wake: called after every answer. prepare: called before the first job, to
    load what the component needs; it takes nothing from the time of the jobs, and what it raises the call raises again.
    A component that raises fails its jobs with the message; one that hangs is left behind by `abandon_overdue`, and a
    new thread serves the jobs that follow.
    """

    def __init__(
        self, name: str, call: BatchCall, wake: Callable[[], None], prepare: Callable[[], object] | None = None
    ) -> None:
        self._name = name
        self._call = call
        self._wake = wake
        self._prepare = prepare
        self._queue: list[Job] = []
        self._running: list[Job] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, payload: Any, timeout_s: float, on_done: Callable[[], object] | None = None) -> Job:
        """Queues one call that must be answered within `timeout_s` seconds."""
        job = Job(payload, timeout_s, on_done)
        with self._changed:
            self._queue.append(job)
            if self._thread is None:
                self._start()
            self._changed.notify()
        return job

    def abandon_overdue(self, now: float) -> None:
        """Fails the jobs whose deadline has passed, and replaces the thread if it hangs in one of them."""
        with self._changed:
            for job in self._timed():
                if now >= job.deadline:
                    job.settle(error=f"{self._name} did not answer within {job.timeout_s:g} s")
            self._queue = [job for job in self._queue if not job.done]
            if self._running and all(job.done for job in self._running):
                self._running = []
                self._start()

    def next_deadline(self) -> float | None:
        """The earliest deadline of the open jobs."""
        with self._changed:
            return min((job.deadline for job in self._timed() if not job.done), default=None)

    def close(self) -> None:
        """Ends the thread after the call it is in; open jobs fail."""
        with self._changed:
            self._closed = True
            for job in (*self._queue, *self._running):
                job.settle(error=f"{self._name} was closed")
            self._changed.notify_all()

    def _timed(self) -> list[Job]:
        """The jobs whose time runs: all, once the component is prepared."""
        return [*self._queue, *self._running] if self._prepare is None else []

    def _get_ready(self) -> None:
        if self._prepare is None:
            return
        with suppress(Exception):  # the call raises it again, and then it is some job's error
            self._prepare()
        with self._changed:
            self._prepare = None
            for job in self._queue:
                job.submitted = time.monotonic()
        self._wake()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name=f"ewe-{self._name}", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        me = threading.current_thread()
        self._get_ready()
        while True:
            with self._changed:
                while not self._queue and not self._closed and self._thread is me:
                    self._changed.wait()
                if self._closed or self._thread is not me:
                    return
                batch, self._queue = self._queue, []
                self._running = batch
            self._answer(batch)
            with self._changed:
                if self._running is batch:
                    self._running = []

    def _answer(self, batch: list[Job]) -> None:
        """Calls the component; if that fails with several jobs, once per job: one bad payload must not fail others."""
        try:
            results = list(self._call([job.payload for job in batch]))
            if len(results) != len(batch):
                raise ValueError(f"{len(results)} results for {len(batch)} requests")
        except Exception as error:  # a component is foreign code: whatever it raises must not stop the text
            if len(batch) == 1:
                self._settle(batch[0], error=f"{self._name} failed: {type(error).__name__}: {error}")
            for job in batch if len(batch) > 1 else ():
                if not job.done:
                    self._answer([job])
        else:
            for job, result in zip(batch, results, strict=True):
                self._settle(job, result)
        self._wake()

    def _settle(self, job: Job, result: Any = None, error: str = "") -> None:
        with self._changed:  # the loop may be giving the job up right now
            job.settle(result, error)


def retrieve(
    retriever: Retriever | None, memories: Memories | None, top_k: int, queries: Sequence[Query]
) -> list[list[ScoredPassage]]:
    """Per query what is remembered, then at most `top_k` passages, or the query's own number; each part best first.

    Raises TypeError for anything else than scored passages, ValueError for answers to another number of queries.
    """
    remembered = [[] for _ in queries] if memories is None else memories.recall(queries)
    numbers = [query.top_k or top_k for query in queries]
    retrieved: list[list[ScoredPassage]] = [[] for _ in queries]
    if retriever is not None:
        retrieved = retriever.retrieve([query.text for query in queries], max(numbers, default=top_k))
    results = [[*own, *hits[:most]] for own, hits, most in zip(remembered, retrieved, numbers, strict=True)]
    for hit in (hit for hits in results for hit in hits):
        _expect(hit, ScoredPassage, "the retriever")
        _expect(hit.passage, Passage, "the retriever, in a ScoredPassage,")
        _expect(hit.score, Real, "the retriever, as a score,")
    return results


def verify(verifier: Verifier, batches: Sequence[Sequence[VerificationRequest]]) -> list[list[VerificationResult]]:
    """The results per batch, from one call for all; raises ValueError or TypeError for malformed ones."""
    requests = [request for batch in batches for request in batch]
    results = list(verifier.verify(requests))
    if len(results) != len(requests):
        raise ValueError(f"{len(results)} results for {len(requests)} sentences")
    for result in results:
        _check_result(result)
    remaining = iter(results)
    return [list(islice(remaining, len(batch))) for batch in batches]


def _check_result(result: Any) -> None:
    _expect(result, VerificationResult, "the verifier")
    for claim in result.claims:
        _expect(claim, Claim, "the verifier, among the claims,")
        _expect(claim.text, str, "the verifier, as a claim's text,")
        _expect(claim.verdict, Verdict, "the verifier, as a claim's verdict,")
        _expect(claim.evidence_ids, tuple, "the verifier, as a claim's evidence_ids,")
    for item in result.evidence:
        _expect(item, Evidence, "the verifier, as evidence,")
        _expect(item.passage, Passage, "the verifier, in its evidence,")
        _expect(item.stance, Verdict, "the verifier, as a stance,")
        _expect(item.score, Real, "the verifier, as a score,")
        _expect(item.excerpt, str, "the verifier, as an excerpt,")


def _expect(value: Any, kind: type, where: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{where} must return {kind.__name__}, got {type(value).__name__}")
