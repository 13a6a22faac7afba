"""The engine's own thread: it steps the core while there is work and sleeps while there is none.

The core is touched by this thread alone.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ewe.errors import EngineDeadError

if TYPE_CHECKING:
    from ewe.engine.core import EngineCore

_LONGEST_SLEEP_S = 1.0  # A loop that has nothing to do still turns this often, to show that it could.


class EngineLoop:
    """Runs a core in a daemon thread. on_death is called once, with the reason, when the loop has ended."""

    def __init__(self, core: EngineCore, changed: threading.Event, on_death: Callable[[EngineDeadError], None]) -> None:
        self._core = core
        self._changed = changed
        self._on_death = on_death
        self._inbox: deque[Callable[[EngineCore], Any]] = deque()
        self._closing = False
        self._error: EngineDeadError | None = None
        self._turned = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="ewe-engine", daemon=True)
        self._thread.start()

    def do(self, action: Callable[[EngineCore], Any]) -> None:
        """Has the loop call `action(core)` before its next step; raises EngineDeadError if the loop has ended."""
        if self._error is not None:
            raise self._error
        if self._closing:
            raise EngineDeadError("the engine was closed")
        self._inbox.append(action)
        self._changed.set()

    def fail(self, error: EngineDeadError) -> None:
        """Ends the loop from another thread, after the step that is under way."""
        self._error = self._error or error
        self._changed.set()

    @property
    def is_alive(self) -> bool:
        """Whether requests are still served."""
        return self._error is None and not self._closing

    @property
    def stalled_s(self) -> float:
        """Seconds since the loop last began a turn: about a step's time, or a second if there is nothing to do."""
        return time.monotonic() - self._turned

    def close(self) -> None:
        """Aborts what is left and ends the thread."""
        if self._closing:
            return
        self._closing = True
        self._changed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _serve(self) -> None:
        # A full collection would look through all that torch and transformers have made, and no step would be launched
        # for a quarter of a second. What is there now is left out until the engine is closed.
        gc.freeze()
        try:
            while not self._closing:
                self._work()
            error = EngineDeadError("the engine was closed")
            for sequence in list(self._core.sequences):
                self._core.end(sequence, "abort")
        except Exception as cause:  # the loop must not die silently: whoever waits is told
            error = EngineDeadError(f"the engine loop stopped: {type(cause).__name__}: {cause}")
            error.__cause__ = cause
        gc.unfreeze()
        # In this order: who finds no error yet has registered before and is told below.
        self._error = self._error or error
        self._on_death(self._error)

    def _work(self) -> None:
        """Hands over what has come in and makes one step; waits if there is nothing to do."""
        self._turned = time.monotonic()
        if self._error is not None:
            raise self._error
        if not self._inbox and not self._core.is_busy:
            self._changed.wait(_LONGEST_SLEEP_S)
            self._changed.clear()
        while self._inbox:
            self._inbox.popleft()(self._core)
        if self._core.is_busy:
            self._core.step()
