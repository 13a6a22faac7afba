"""The router as a process: it starts and ends its replicas, or stands before servers that others run."""

import asyncio
import logging
import socket
from collections.abc import Sequence

from starlette.types import ASGIApp

from ewe.server import VERSION
from ewe.server.http.draining import FLUSH_S, DrainingServer
from ewe.server.http.listener import listen
from ewe.server.observability.log_lines import say
from ewe.server.observability.start_report import address
from ewe.server.request_handling.middleware import open_tracing, set_up_logs
from ewe.server.router.processes import ReplicaProcess
from ewe.server.router.replicas import ReplicaSet
from ewe.server.router.router_app import create_router
from ewe.server.settings import ServerSettings
from ewe.server.traffic.affinity import FindPassage

_END_S = 30.0  # for replicas without requests to end in
_log = logging.getLogger("ewe.server")


def serve_router(
    settings: ServerSettings,
    replicas: ReplicaSet,
    processes: Sequence[ReplicaProcess] = (),
    find_passage: FindPassage | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; raises ConfigError for a port that cannot be had or replicas that cannot start.

    processes: the replicas that are this process' own; they drain and end with it.
    """
    set_up_logs(settings.log_format)
    tracing = open_tracing(settings)
    listener = listen(settings)
    port = listener.getsockname()[1]
    say(f"ewe {VERSION} listens on {address(settings.host, port)}; {len(replicas.replicas)} replicas behind it")
    app = create_router(replicas, settings.max_body_bytes, find_passage, tracing)
    server = _Router(app, replicas, processes, settings)
    server.run([listener])
    if server.failure is not None:
        raise server.failure


class _Router(DrainingServer):
    def __init__(
        self, app: ASGIApp, replicas: ReplicaSet, processes: Sequence[ReplicaProcess], settings: ServerSettings
    ) -> None:
        super().__init__(app, settings)
        self._replicas = replicas
        self._processes = processes
        self._drain_s = settings.drain
        self._running: list[asyncio.Task[None]] = []

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Runs until it is told to stop; no process is left then."""
        self._running = [asyncio.create_task(process.run()) for process in self._processes]
        for task in self._running:
            task.add_done_callback(self._note_end)
        try:
            await super().serve(sockets)
        finally:
            for process in self._processes:
                process.stop(kill=True)
            await asyncio.gather(*self._running, return_exceptions=True)

    def refuse_new(self) -> bool:
        """Has the next requests told that the server is shutting down."""
        was_draining, self._replicas.is_draining = self._replicas.is_draining, True
        return not was_draining

    async def drain(self, signal_name: str) -> None:
        """Replicas let their answers end, or break them off in time, and end."""
        _log.info("draining", extra={"fields": {"signal": signal_name, "at_most_s": self._drain_s}})
        for process in self._processes:
            process.stop()
        await self._replicas.wait_until_idle(self._drain_s + FLUSH_S)
        if self._running:
            await asyncio.wait(self._running, timeout=_END_S)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)
