"""Retrieval and verification outside the loop's thread, batched across sequences."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

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
