"""One request in the engine, and the bridge from the engine's thread to the event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from ewe.client import Answer
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.request import Request
from ewe.errors import EngineDeadError
from ewe.types import Generation

if TYPE_CHECKING:
    from ewe.server.engine_client.served_engine import OpenedRequest, ServedEngine


_T = TypeVar("_T")


class EventLoopBridge(Generic[_T]):
    """Messages to receivers on one event loop.

    A step of the engine brings news for every stream, and waking the event loop costs more than the news: it is woken
    for the first message and finds the others beside it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._messages: deque[tuple[Callable[[_T], None], _T]] = deque()
        self._is_woken = False

    def put(self, receiver: Callable[[_T], None], message: _T) -> None:
        """Has `receiver(message)` called on the event loop, messages in their order; from one thread at a time."""
        self._messages.append((receiver, message))
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):  # the event loop has been closed: nobody reads, and the engine serves others
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_woken = False  # before the messages are taken: one that comes too late for now wakes the loop again
        while self._messages:
            receiver, message = self._messages.popleft()
            receiver(message)


class RunEvent(NamedTuple):
    """Something that happened to one of the request's choices."""

    choice: int
    event: StreamEvent


EngineMessage = RunEvent | EngineDeadError


class RunObserver(Protocol):
    """Who watches one request in the engine."""

    def see(self, opened: OpenedRequest, event: StreamEvent) -> None:
        """Takes one event in, in the engine's thread, and must not raise; opened: the prompt that it is about."""

    def close(self) -> None:
        """The request has ended; an event that was under way may still come."""


class Run:
    """Submitted prompts, `n` answers each; choices are numbered through all of them.

    event_kinds: those to pass on; "finish" always is. observers: hear every event at once, and the end.
    on_end: called once, on the event loop, when the engine has ended the run or it was closed. own_deadline: whether
    the request named the time at which its answers end. tenant: who waits for it. only_prompts: whether the answers are
    left out, for who wants no more than the prompts scored.
    """

    def __init__(
        self,
        engine: ServedEngine,
        bridge: EventLoopBridge[EngineMessage],
        event_kinds: frozenset[str],
        observers: Iterable[RunObserver],
        on_end: Callable[[], None],
        own_deadline: bool = False,
        tenant: str = "",
        only_prompts: bool = False,
    ) -> None:
        self.opened: list[OpenedRequest] = []
        self.own_deadline = own_deadline
        self.tenant = tenant
        self._engine = engine
        self._bridge = bridge
        self._event_kinds = frozenset({"finish"}) if only_prompts else event_kinds | {"finish"}
        self._only_prompts = only_prompts
        self._observers = tuple(observers)
        self._on_end = on_end
        self._messages: asyncio.Queue[EngineMessage] = asyncio.Queue()
        self._generations: dict[int, Generation] = {}
        self._ended = False

    def open(self, requests: Iterable[Request]) -> None:
        """Has the engine check each request, to be submitted; from any thread. Raises as `ServedEngine.open` does."""
        for request in requests:
            listener = partial(self._listen, len(self.opened), self.num_choices)
            opened = self._engine.open(replace(request, listener=listener))
            self.opened.append(opened)
            if self._ended:  # meanwhile, on the event loop
                self._engine.forget(opened.request.id, abort=False)

    def submit(self) -> None:
        """Has the engine begin; raises EngineDeadError."""
        for opened in self.opened:
            opened.submit(self._take_death)

    @property
    def num_choices(self) -> int:
        """Answers of all prompts together."""
        return sum(opened.request.params.n for opened in self.opened)

    @property
    def generations(self) -> list[Generation]:
        """The finished answers, in the order of their choices."""
        return [self._generations[choice] for choice in sorted(self._generations)]

    @property
    def is_finished(self) -> bool:
        """Whether every answer is finished."""
        return len(self._generations) == self.num_choices

    async def events(self, silence_s: float | None = None) -> AsyncIterator[list[RunEvent]]:
        """What happens, in order, in batches of what has come since the last, until every answer is finished.

        silence_s: seconds without events after which an empty batch comes (None: none does). Raises EngineDeadError.
        """
        while not self.is_finished:
            messages = await self._news(silence_s)
            batch = [message for message in messages if isinstance(message, RunEvent)]
            for choice, event in batch:
                if event.kind == "finish":
                    self._generations[choice] = event.generation
            if self.is_finished:
                self._end()
            yield batch
            for message in messages:
                if isinstance(message, EngineDeadError) and not self.is_finished:
                    raise message

    async def answers(self) -> list[Generation]:
        """The finished answers; raises EngineDeadError."""
        async for _ in self.events():
            pass
        return self.generations

    def close(self) -> None:
        """Ends the run; answers that are not finished are aborted. Once more does nothing."""
        self._end()
        for opened in self.opened:
            with suppress(EngineDeadError):
                self._engine.forget(opened.request.id, abort=not self.is_finished)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            for observer in self._observers:
                observer.close()
            self._on_end()

    def _listen(self, place: int, first_choice: int, event: StreamEvent) -> None:
        """Called in the engine's thread; place: the prompt's, first_choice: the number of its first answer."""
        for observer in self._observers:
            observer.see(self.opened[place], event)
        if event.kind in self._event_kinds:
            if self._only_prompts:
                event = replace(event, generation=_without_answer(event.generation))
            self._bridge.put(self._messages.put_nowait, RunEvent(first_choice + event.index, event))

    def _take_death(self, answer: Answer) -> None:
        if isinstance(answer, EngineDeadError):
            self._bridge.put(self._messages.put_nowait, answer)

    async def _news(self, silence_s: float | None) -> list[EngineMessage]:
        """What has come since the last time; waits for it if it is nothing, but not longer than told."""
        messages: list[EngineMessage] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(silence_s):
                messages.append(await self._messages.get())
        while not self._messages.empty():
            messages.append(self._messages.get_nowait())
        return messages


def _without_answer(generation: Generation) -> Generation:
    """The prompt alone: the engine ends no request before its first token, as vLLM's does not."""
    ended = "length" if generation.finish_reason == "stop" else generation.finish_reason
    stats = replace(generation.stats, tokens_kept=0, tokens_discarded=0, sentences=0)
    bare = replace(generation, text="", token_ids=(), logprobs=(), top_logprobs=(), sentences=(), stats=stats)
    return replace(bare, finish_reason=ended)
