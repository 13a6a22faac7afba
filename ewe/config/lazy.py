"""Models that are loaded when they are first needed."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Lazy(Generic[_T]):
    """A value that is made by the first `get`, from whatever thread; what making it raises is raised by every `get`."""

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make = make
        self._made: list[_T] = []
        self._lock = threading.Lock()

    def get(self) -> _T:
        """The value."""
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


def warm(part: object) -> None:
    """Has a part load what it would load at its first call; one without a `warm` method has nothing to load."""
    load = getattr(part, "warm", None)
    if load is not None:
        load()
