"""Connections: a bounded number of them, and none waits for its client without end."""

import logging
import resource
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from ewe.errors import ConfigError
from ewe.server.settings import ServerSettings

_MOST = 8192  # by default, however many descriptors there may be
_LOG_EVERY_S = 60.0

_log = logging.getLogger("ewe.server")


def connection_limit(settings: ServerSettings) -> int:
    """How many connections a server takes: half of the descriptors that it may open, unless the settings say.

    Raises ConfigError for more than there are descriptors.
    """
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        descriptors = 2 * _MOST
    if settings.max_connections is None:
        return max(1, min(_MOST, descriptors // 2))
    if settings.max_connections > descriptors // 4 * 3:
        raise ConfigError(
            f"server.max_connections: {settings.max_connections} are too many for a process that may open "
            f"{descriptors} files: raise that (ulimit -n), or take at most {descriptors // 4 * 3}"
        )
    return settings.max_connections


class MinuteLog:
    """Warnings with counts, at most one a minute: what happens meanwhile is in the next. now: seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next = float("-inf")
        self._counts: Counter[str] = Counter()

    def count(self, what: str) -> None:
        """Counts something, and tells of it if the last line is old enough."""
        self._counts[what] += 1
        if self._now() >= self._next:
            self._next = self._now() + _LOG_EVERY_S
            _log.warning("connections were closed or refused", extra={"fields": dict(self._counts)})
            self._counts.clear()


class Waiting(Protocol):
    """A connection as its watch sees it."""

    def drop(self) -> None:
        """Ends it at once."""

    def refuse(self) -> None:
        """Tells the client that there is no room, and ends it."""


class ConnectionWatch:
    """Knows every connection, and which of them wait for their clients since when.

    A new one over the limit takes the place of the one whose client has been silent for the longest; where every other
    is being served, it is refused.
    """

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._log = MinuteLog(now)
        self._open: set[Waiting] = set()
        self._waiting: dict[Waiting, tuple[float, float]] = {}  # since when, until when; the oldest first

    def enter(self, connection: Waiting, patience_s: float) -> None:
        """Takes in a new connection, whose first request must come in this time."""
        self._open.add(connection)
        if len(self._open) > self._most:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                self._log.count("refused")
                self.leave(connection)
                connection.refuse()
                return
            self._log.count("closed")
            self._end(oldest)
        self.wait(connection, patience_s)

    def wait(self, connection: Waiting, patience_s: float) -> None:
        """From now on it waits for its client, this long at most."""
        self._waiting.pop(connection, None)
        if connection in self._open:
            now = self._now()
            self._waiting[connection] = (now, now + patience_s)

    def waited_s(self, connection: Waiting) -> float:
        """For how long it has waited for its client; 0 if it does not."""
        now = self._now()
        return now - self._waiting.get(connection, (now, now))[0]

    def serve(self, connection: Waiting) -> None:
        """It waits no more: now the client waits."""
        self._waiting.pop(connection, None)

    def leave(self, connection: Waiting) -> None:
        """It is no more."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def end_overdue(self) -> None:
        """Ends the connections whose clients have let them wait for too long."""
        now = self._now()
        for connection in [one for one, (_, until) in self._waiting.items() if until <= now]:
            self._end(connection)

    def out_of_descriptors(self) -> None:
        """Notes that a connection could not be taken in."""
        self._log.count("no_descriptor")

    def _end(self, connection: Waiting) -> None:
        self.leave(connection)
        connection.drop()
