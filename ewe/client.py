"""One running engine: its thread, and the requests that are under way in it. Callbacks come from that thread."""

from __future__ import annotations

import gc
import itertools
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ewe.components import Components
from ewe.config import Config
from ewe.config.loading import LoadStep, OnLoad
from ewe.engine.request import Request, check_closed_world
from ewe.engine.status import EngineStatus, status_of
from ewe.errors import EngineDeadError
from ewe.types import Generation

if TYPE_CHECKING:
    from ewe.engine.core import EngineCore
    from ewe.engine.models.loader import LoadedModel
    from ewe.engine.sequence import Sequence
    from ewe.engine.stream_events import StreamEvent

Answer = Generation | EngineDeadError
_LONGEST_SLEEP_S = 1.0  # A loop that has nothing to do still turns this often, to show that it could.


class EngineLoop:
    """Runs a core in a daemon thread. on_death is called once, with the reason, when the loop has ended."""

    def __init__(self, core: EngineCore, changed: threading.Event, on_death: Callable[[EngineDeadError], None]) -> None:
        self._core = core
        self._changed = changed
        self._on_death = on_death
        self._inbox: deque[Callable[[EngineCore], Any]] = deque()
        self._error: EngineDeadError | None = None
        self._closed = EngineDeadError("the engine was closed")
        self._turned = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="ewe-engine", daemon=True)
        self._thread.start()

    def do(self, action: Callable[[EngineCore], Any]) -> None:
        """Has the loop call `action(core)` before its next step; raises EngineDeadError if the loop has ended."""
        if self._error is not None:
            raise self._error
        self._inbox.append(action)
        self._changed.set()

    def fail(self, error: EngineDeadError) -> None:
        """Ends the loop from another thread, after the step that is under way."""
        self._error = self._error or error
        self._changed.set()

    @property
    def is_alive(self) -> bool:
        """Whether requests are still served."""
        return self._error is None

    @property
    def stalled_s(self) -> float:
        """Seconds since the loop last began a turn: about a step's time, or a second if there is nothing to do."""
        return time.monotonic() - self._turned

    def close(self) -> None:
        """Aborts what is left, if the loop has not ended, and ends the thread."""
        self.fail(self._closed)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        # A full collection would look through all that torch and transformers have made, and no step would be launched
        # for a quarter of a second. What is there now is left out until the engine is closed.
        gc.freeze()
        try:
            while self._error is None:
                self._work()
            if self._error is self._closed:  # of a death whoever waits hears as an error, not as the end of an answer
                for sequence in list(self._core.sequences):
                    self._core.end(sequence, "abort")
        except Exception as cause:  # the loop must not die silently: whoever waits is told
            error = EngineDeadError(f"the engine loop stopped: {type(cause).__name__}: {cause}")
            error.__cause__ = cause
            self.fail(error)
        gc.unfreeze()
        assert self._error is not None  # who found none has registered before and is told now
        self._on_death(self._error)

    def _work(self) -> None:
        """Hands over what has come in and makes one step; waits if there is nothing to do."""
        self._turned = time.monotonic()
        if not self._inbox and not self._core.is_busy:
            self._changed.wait(_LONGEST_SLEEP_S)
            self._changed.clear()
        while self._inbox:
            self._inbox.popleft()(self._core)
        if self._core.is_busy:
            self._core.step()


class EngineClient:
    """Starts an engine and hands requests to it; loaded: a model in memory already; on_load: hears of each step.

    torch and transformers are imported here: what can be checked without them has been checked by then.
    """

    def __init__(self, config: Config, components: Components, loaded: LoadedModel | None, on_load: OnLoad) -> None:
        self.components = components
        try:
            on_load(LoadStep("importing torch and transformers"))
            from ewe.assembly import build_engine
            from ewe.engine.models.openmp import end_workers

            self.engine = build_engine(config, components, self._deliver, loaded, on_load)
            end_workers()  # the loop computes in a thread of its own
            if components.judge is not None:
                components.judge.attach(self.run, self.engine.loaded)
        except BaseException:
            components.close()
            raise
        self._waiting: dict[str, Callable[[Answer], object]] = {}
        self._numbers = itertools.count(1)
        self._loop = EngineLoop(self.engine.core, self.engine.changed, self._report_death)
        if self.engine.executor is not None:
            self.engine.executor.watch(self._end_loop)
        if components.memories is not None:
            components.memories.start()

    def build(self, request: Request) -> Sequence:
        """The sequence of a checked request that has not been submitted; raises InvalidRequestError."""
        summary = self.components.summary
        check_closed_world(request.closed_world, summary.unchecked if summary is not None else "")
        self.engine.core.policies.check(request)
        return self.engine.input_processor.build(f"request-{next(self._numbers)}", request)

    def submit(self, sequence: Sequence, on_answer: Callable[[Answer], object]) -> None:
        """Starts a request; `on_answer` is called once per answer, or with the error if the engine breaks."""
        self._waiting[sequence.request.id] = on_answer
        self._loop.do(lambda core: core.add(sequence))

    def forget(self, request_id: str, abort: bool) -> None:
        """Stops listening to a request; with `abort` it ends now."""
        if self._waiting.pop(request_id, None) is not None and abort and self._loop.is_alive:
            self._loop.do(lambda core: core.abort(request_id))

    def run(self, requests: list[Request], on_result: Callable[[int, Generation], None] | None) -> list[Generation]:
        """The answers to all requests, in order; on_result: called with a request's number and each answer."""
        sequences = [self.build(request) for request in requests]
        answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        total = sum(1 + len(sequence.siblings) for sequence in sequences)
        found: dict[tuple[int, int], Generation] = {}

        def put(number: int, answer: Answer) -> None:
            answers.put((number, answer))

        try:
            for number, sequence in enumerate(sequences):
                self.submit(sequence, partial(put, number))
            while len(found) < total:
                number, answer = answers.get()
                if isinstance(answer, EngineDeadError):
                    raise answer
                found[number, answer.index] = answer
                if on_result is not None:
                    on_result(number, answer)
        finally:
            for sequence in sequences:
                self.forget(sequence.request.id, abort=len(found) < total)
        return [found[key] for key in sorted(found)]

    def events(
        self, sequence: Sequence, events: queue.SimpleQueue[StreamEvent | EngineDeadError]
    ) -> Iterator[StreamEvent]:
        """The events of a request that puts them into this queue; leaving early aborts it."""
        finished = False
        try:
            self.submit(sequence, lambda answer: events.put(answer) if isinstance(answer, EngineDeadError) else None)
            while not finished:
                event = events.get()
                if isinstance(event, EngineDeadError):
                    raise event
                finished = event.kind == "finish"
                yield event
        finally:
            self.forget(sequence.request.id, abort=not finished)

    def forget_unused_units(self) -> None:
        """Gives up every encoded unit that no request holds, before anything that is submitted from now on."""
        self._loop.do(lambda _: self.engine.keeper.cache.evict(sys.maxsize))

    @property
    def is_alive(self) -> bool:
        """Whether requests are still served."""
        return self._loop.is_alive

    def status(self) -> EngineStatus:
        """The engine's state at this moment; from any thread."""
        engine = self.engine
        return status_of(engine.core, engine.manager, engine.keeper.cache, self._loop.stalled_s, engine.decoder)

    def close(self) -> None:
        """Aborts what is under way, ends the engine's threads and gives the pool's memory back."""
        if self.components.memories is not None:
            self.components.memories.finish()
        self._loop.close()
        self.engine.core.close()
        self.components.close()
        if self.engine.precomputed is not None:
            self.engine.precomputed.close()

    def _deliver(self, sequence: Sequence, generation: Generation) -> None:
        if self.components.memories is not None:  # first: who has the answer may wait for what it teaches
            request = sequence.request
            self.components.memories.learn(generation, sequence.evidence, request.memory, request.user_text)
        on_answer = self._waiting.get(sequence.request.id)
        if on_answer is not None:
            on_answer(generation)

    def _end_loop(self, error: EngineDeadError) -> None:
        """Ends the loop from outside it, and everybody's waiting: the pass under way may be waiting for the dead."""
        self._loop.fail(error)
        self._tell_all(error)

    def _tell_all(self, error: EngineDeadError) -> None:
        for on_answer in list(self._waiting.values()):
            on_answer(error)

    def _report_death(self, error: EngineDeadError) -> None:
        self._tell_all(error)
        self.engine.pool.release()  # by the loop's own thread: no pass is under way any more
