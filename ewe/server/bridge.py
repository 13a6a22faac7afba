"""From the engine's thread to the event loop: whatever has come together is taken over at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

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
