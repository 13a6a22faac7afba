"""One request in the engine: its answers' events on the event loop, until the last is finished or nobody wants them.

Owns: the bridge from the engine's thread, and that whatever was begun is ended. Knows the client; no HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from collections.abc import Sequence as Batch
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ewe.client import Answer, EngineClient
from ewe.engine.intake import Prompt
from ewe.engine.sequence import Sequence, StreamEvent
from ewe.errors import EngineDeadError
from ewe.types import Generation


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that happened to one of the request's choices."""

    choice: int
    event: StreamEvent


class Run:
    """Submitted prompts, `n` answers each; choices are numbered through all of them.

    wanted: kinds of events to pass on; "finish" always is. on_event: hears every event at once, in the engine's thread,
    so it must not raise. on_end: called once, on the event loop, when the engine has ended the run or it was closed.
    """

    def __init__(
        self,
        client: EngineClient,
        wanted: frozenset[str],
        on_event: Callable[[Sequence, StreamEvent], None],
        on_end: Callable[[], None],
    ) -> None:
        self.sequences: list[Sequence] = []
        self._client = client
        self._wanted = wanted | {"finish"}
        self._on_event = on_event
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[RunEvent | EngineDeadError] = asyncio.Queue()
        self._generations: dict[int, Generation] = {}
        self._ended = False

    def build(self, make: Callable[[Prompt], Sequence], prompts: Batch[Prompt]) -> None:
        """Makes a sequence of each prompt, to be submitted; from any thread. Raises what `make` raises."""
        for prompt in prompts:
            sequence = make(prompt)
            for answer in (sequence, *sequence.siblings):
                answer.listener = partial(self._listen, sequence, self.num_choices + answer.index)
            self.sequences.append(sequence)

    def submit(self) -> None:
        """Hands the sequences to the engine; raises EngineDeadError."""
        for sequence in self.sequences:
            self._client.submit(sequence, self._take_death)

    @property
    def num_choices(self) -> int:
        """Answers of all prompts together."""
        return sum(sequence.params.n for sequence in self.sequences)

    @property
    def generations(self) -> list[Generation]:
        """The finished answers, in the order of their choices."""
        return [self._generations[choice] for choice in sorted(self._generations)]

    @property
    def is_finished(self) -> bool:
        """Whether every answer is finished."""
        return len(self._generations) == self.num_choices

    async def events(self) -> AsyncIterator[RunEvent]:
        """What happens, in order, until every answer is finished; raises EngineDeadError."""
        while not self.is_finished:
            item = await self._events.get()
            if isinstance(item, EngineDeadError):
                raise item
            if item.event.kind == "finish":
                self._generations[item.choice] = item.event.generation
                if self.is_finished:
                    self._end()
            yield item

    async def answers(self) -> list[Generation]:
        """The finished answers; raises EngineDeadError."""
        async for _ in self.events():
            pass
        return self.generations

    def close(self) -> None:
        """Ends the run; answers that are not finished are aborted. Once more does nothing."""
        for sequence in self.sequences:
            with suppress(EngineDeadError):
                self._client.forget(sequence.request_id, abort=not self.is_finished)
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_end()

    def _listen(self, sequence: Sequence, choice: int, event: StreamEvent) -> None:
        """Called in the engine's thread."""
        self._on_event(sequence, event)
        if event.kind in self._wanted:
            self._post(RunEvent(choice, event))

    def _take_death(self, answer: Answer) -> None:
        if isinstance(answer, EngineDeadError):
            self._post(answer)

    def _post(self, item: RunEvent | EngineDeadError) -> None:
        with suppress(RuntimeError):  # the event loop has been closed: nobody reads, and the engine serves others
            self._loop.call_soon_threadsafe(self._events.put_nowait, item)
