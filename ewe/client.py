"""One running engine: its thread, and the requests that are under way in it. Callbacks come from that thread."""

from __future__ import annotations

import itertools
import queue
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ewe.components import Components
from ewe.config import Config
from ewe.config.loading import LoadStep, OnLoad
from ewe.engine.engine_loop import EngineLoop
from ewe.engine.request import Request, TokenizedRequest
from ewe.engine.status import EngineStatus, status_of
from ewe.errors import EngineDeadError, InvalidRequestError
from ewe.types import Generation

if TYPE_CHECKING:
    from ewe.engine.answer_text.stream_events import StreamEvent
    from ewe.engine.models.loader import LoadedModel
    from ewe.engine.sequence import Sequence

Answer = Generation | EngineDeadError


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
        except BaseException:
            components.close()
            raise
        self._waiting: dict[str, Callable[[Answer], object]] = {}
        self._numbers = itertools.count(1)
        self._loop = EngineLoop(self.engine.core, self.engine.changed, self._report_death)
        if self.engine.executor is not None:
            self.engine.executor.watch(self._end_loop)
        try:
            self.components = components.attached(self.run, self.engine.loaded, on_load)
            if components.memories is not None:
                components.memories.start()  # its reviews may ask the judge
        except BaseException:
            self.close()
            raise

    def build(self, request: Request) -> Sequence:
        """The sequence of a checked request that has not been submitted; raises InvalidRequestError."""
        return self.sequence(self.engine.input_processor.prepare(f"request-{next(self._numbers)}", request))

    def sequence(self, tokenized: TokenizedRequest) -> Sequence:
        """The same of one that has been tokenised, with an id of its own."""
        self.engine.core.policies.check(tokenized.original)
        return self.engine.input_processor.sequence(tokenized)

    def submit(self, sequence: Sequence, on_answer: Callable[[Answer], object]) -> None:
        """Starts a request; `on_answer` is called once per answer, or with the error if the engine breaks."""
        self._waiting[sequence.request.id] = on_answer
        self._loop.do(lambda core: core.active.add(sequence))

    def forget(self, request_id: str, abort: bool) -> None:
        """Stops listening to a request; with `abort` it ends now."""
        if self._waiting.pop(request_id, None) is not None and abort and self._loop.is_alive:
            self._loop.do(lambda core: core.active.abort(request_id))

    def run(
        self,
        requests: list[Request],
        on_result: Callable[[int, Generation], None] | None,
        on_refused: Callable[[int, InvalidRequestError], None] | None = None,
    ) -> list[Generation]:
        """The answers to all requests, in order; on_result: called with a request's number and each answer.

        on_refused: called with the number of each request that cannot be served, and why; without it the first of them
        raises InvalidRequestError before anything is computed.
        """
        sequences: dict[int, Sequence] = {}
        for number, request in enumerate(requests):
            try:
                sequences[number] = self.build(request)
            except InvalidRequestError as error:
                if on_refused is None:
                    raise
                on_refused(number, error)
        answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        total = sum(1 + len(sequence.siblings) for sequence in sequences.values())
        answered: dict[tuple[int, int], Generation] = {}

        def put(number: int, answer: Answer) -> None:
            answers.put((number, answer))

        try:
            for number, sequence in sequences.items():
                self.submit(sequence, partial(put, number))
            while len(answered) < total:
                number, answer = answers.get()
                if isinstance(answer, EngineDeadError):
                    raise answer
                answered[number, answer.index] = answer
                if on_result is not None:
                    on_result(number, answer)
        finally:
            for sequence in sequences.values():
                self.forget(sequence.request.id, abort=len(answered) < total)
        return [answered[key] for key in sorted(answered)]

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
        self._loop.do(lambda _: self.engine.memory_manager.cache.evict(sys.maxsize))

    def call_after_turns(self, call: Callable[[], object]) -> None:
        """Has the engine's thread call this after each of its steps, and once when it has ended."""
        self._loop.on_turn = call

    @property
    def is_alive(self) -> bool:
        """Whether requests are still served."""
        return self._loop.is_alive

    def status(self) -> EngineStatus:
        """The engine's state at this moment; from any thread."""
        return status_of(self.engine, self._loop.stalled_s)

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
