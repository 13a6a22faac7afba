"""A server process that drains when it is told to stop."""

import asyncio
import os
import signal
import socket
from abc import ABC, abstractmethod
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from ewe.errors import ConfigError
from ewe.server.settings import ServerSettings

FLUSH_S = 5  # for answers that were broken off to reach their readers
LISTEN_FD = "EWE_LISTEN_FD"  # a variable: the number of a socket that listens already, from the process before this one


def listen(settings: ServerSettings) -> socket.socket:
    """The server's socket, or the one that it was started with; raises ConfigError for a port that cannot be had."""
    given = os.environ.pop(LISTEN_FD, None)
    if given is not None:
        listener = socket.socket(fileno=int(given))
        listener.set_inheritable(False)  # a child that outlives this process must not hold the port
        return listener
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}"
        ) from error


class DrainingServer(ABC, uvicorn.Server):
    """uvicorn's server for an app; the first signal drains it, the next one stops it at once.

    failure: why it stopped, where it was not told to.
    """

    def __init__(self, app: ASGIApp) -> None:
        quiet = uvicorn.Config(
            app, log_config=None, access_log=False, timeout_graceful_shutdown=FLUSH_S, server_header=False, ws="none"
        )
        super().__init__(quiet)
        self.failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Task[None] | None = None

    @abstractmethod
    def refuse_new(self) -> bool:
        """Takes nothing in any more; whether that is new. Called between two steps of the event loop's thread."""

    @abstractmethod
    async def drain(self, signal_name: str) -> None:
        """Lets what is under way end."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Runs until it is told to stop."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """What a signal does."""
        if self._loop is None or not self.refuse_new():
            self.should_exit = self.force_exit = True
            return
        self._loop.call_soon_threadsafe(self._begin_to_end, signal.Signals(sig).name)

    def fail(self, error: BaseException) -> None:
        """Stops for a reason."""
        self.failure = error
        self.should_exit = True

    def _begin_to_end(self, signal_name: str) -> None:
        self._ending = asyncio.ensure_future(self._end(signal_name))

    async def _end(self, signal_name: str) -> None:
        await self.drain(signal_name)
        self.should_exit = True
