"""A server process that drains when it is told to stop."""

import asyncio
import signal
import socket
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from ewe.server.http.connections import ConnectionWatch, connection_limit
from ewe.server.http.http_connection import HttpConnection
from ewe.server.settings import ServerSettings

FLUSH_S = 5  # for answers that were broken off to reach their readers
_LOOK_S = 1.0  # between two looks for connections that wait in vain


class DrainingServer(ABC, uvicorn.Server):
    """uvicorn's server for an app; the first signal drains it, the next one stops it at once.

    failure: why it stopped, where it was not told to. Raises ConfigError for more connections than there can be.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        most = connection_limit(settings)
        self._watch = ConnectionWatch(most)
        quiet = uvicorn.Config(
            app,
            http=partial(HttpConnection, self._watch, settings),  # type: ignore[arg-type]  # it makes what it is called with
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=FLUSH_S,
            timeout_keep_alive=settings.keep_alive,
            backlog=max(1, min(2048, most // 2)),  # so many are taken in at once, before any is looked at
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            ws="none",
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
        self._loop.set_exception_handler(self._note_error)
        watching = asyncio.create_task(self._watch_connections())
        try:
            await super().serve(sockets)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

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

    async def _watch_connections(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self._watch.end_overdue()

    def _note_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What the event loop says of an error; without a traceback for each connection that finds no descriptor."""
        if isinstance(context.get("exception"), OSError) and "accept" in str(context.get("message")):
            self._watch.out_of_descriptors()
        else:
            loop.default_exception_handler(context)

    def _begin_to_end(self, signal_name: str) -> None:
        self._ending = asyncio.ensure_future(self._end(signal_name))

    async def _end(self, signal_name: str) -> None:
        await self.drain(signal_name)
        self.should_exit = True
