"""The thread that an engine's steps are made in."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ewe.errors import EngineDeadError

if TYPE_CHECKING:
    from ewe.engine.core import EngineCore

_OBJECTS_BETWEEN_COLLECTIONS = 10_000
_LONGEST_SLEEP_S = 1.0  # A loop that has nothing to do still turns this often, to show that it could.


class RareCollections:
    """Has the collector of garbage hold up as few steps as can be, while any loop of the process runs.

    A full collection would look through all that torch and transformers have made, and no step would be launched for a
    quarter of a second: what is there when the first loop begins is left out. And a step of many rows makes, and drops,
    thousands of objects: to look through them each time that 700 were made would find nothing.
    """

    def __init__(self) -> None:
        self._lock, self._loops = threading.Lock(), 0
        self._before = gc.get_threshold()

    @contextmanager
    def while_running(self) -> Iterator[None]:
        """Around a loop; loops may end in any order."""
        with self._lock:
            self._loops += 1
            if self._loops == 1:
                self._before = gc.get_threshold()
                gc.freeze()
                gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *self._before[1:])
        try:
            yield
        finally:
            with self._lock:
                self._loops -= 1
                if self._loops == 0:
                    gc.set_threshold(*self._before)
                    gc.unfreeze()


_collections = RareCollections()


class EngineLoop:
    """Runs a core in a daemon thread. on_death is called once, with the reason, when the loop has ended.

    on_turn: called by that thread after each of its turns, and when it has ended.
    """

    def __init__(self, core: EngineCore, changed: threading.Event, on_death: Callable[[EngineDeadError], None]) -> None:
        self._core = core
        self._changed = changed
        self._on_death = on_death
        self.on_turn: Callable[[], object] = lambda: None
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
        try:
            with _collections.while_running():
                while self._error is None:
                    self._work()
                    self.on_turn()
            if self._error is self._closed:  # of a death whoever waits hears as an error, not as the end of an answer
                for sequence in list(self._core.active.sequences):
                    self._core.active.end(sequence, "abort")
        except BaseException as cause:  # the loop must not die silently: whoever waits is told
            error = EngineDeadError(f"the engine loop stopped: {type(cause).__name__}: {cause}")
            error.__cause__ = cause
            self.fail(error)
        assert self._error is not None  # who found none has registered before and is told now
        self._on_death(self._error)
        self.on_turn()

    def _work(self) -> None:
        """Hands over what has come in and makes one step; waits if there is nothing to do."""
        self._turned = time.monotonic()
        if not self._inbox and not self._core.active.sequences:
            self._changed.wait(_LONGEST_SLEEP_S)
            self._changed.clear()
        while self._inbox:
            self._inbox.popleft()(self._core)
        if self._core.active.sequences:
            self._core.step()
