"""The server as a process: it listens while the model loads, answers, drains when it is told to stop, and ends."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp

from ewe.config.loading import OnLoad
from ewe.server.app import create_app
from ewe.server.engine_client.served_engine import ServedEngine
from ewe.server.engine_service import Service
from ewe.server.http.draining import FLUSH_S, DrainingServer
from ewe.server.http.listener import LISTEN_FD, listen
from ewe.server.observability.stack_dumps import dump_stacks, end_loading
from ewe.server.observability.start_report import StartLog, report_engine, report_start
from ewe.server.request_handling.middleware import open_tracing, set_up_logs
from ewe.server.settings import ServerSettings
from ewe.server.traffic.fair_queue import take_short_turns

_log = logging.getLogger("ewe.server")


Load = Callable[[OnLoad], ServedEngine]
"""Gives the engine, and tells how far it is."""


def serve(settings: ServerSettings, load: Load, notes: Sequence[str] = ()) -> None:
    """Serves until SIGTERM or SIGINT; load: called in a thread of its own while the server listens.

    notes: what to print beside the settings. A second signal stops at once. Raises what `load` raises, and ConfigError
    for a port that cannot be had or keys that cannot be read.
    """
    set_up_logs(settings.log_format)
    take_short_turns()
    begin = time.monotonic()
    app = create_app(None, settings, open_tracing(settings))
    if LISTEN_FD in os.environ:
        threading.Thread(target=end_with_input, name="ewe-parent", daemon=True).start()
    listener = listen(settings)
    report_start(app, settings, listener.getsockname()[1], notes)
    server = _Server(app, app.state.service, settings)
    dump_stacks()
    loader = threading.Thread(target=server.load, args=(load, begin), name="ewe-load", daemon=True)
    loader.start()
    try:
        server.run([listener])
    finally:
        server.close()
    if server.failure is not None:
        raise server.failure


def end_with_input(stdin: int = 0) -> None:
    """Tells this process to stop when its input ends: the router that started it, and has the other end, is gone."""
    os.read(stdin, 1)
    os.kill(os.getpid(), signal.SIGTERM)


class _Server(DrainingServer):
    def __init__(self, app: ASGIApp, service: Service, settings: ServerSettings) -> None:
        super().__init__(app, settings)
        self._service = service
        self._drain_s = settings.drain
        self._engine: ServedEngine | None = None

    def load(self, load: Load, begin: float) -> None:
        """Loads the engine and what it would load with its first request, and opens the service; a failure ends it."""
        log = StartLog()
        try:
            engine = load(log)
            engine.warm(log)
            report_engine(engine, time.monotonic() - begin)
        except BaseException as error:  # the main thread raises it when it has stopped
            self.fail(error)
            return
        finally:
            log.close()
            end_loading()
        self._engine = engine
        self._service.open(engine)
        _log.info("ready", extra={"fields": {"model": self._service.served.names.listed[0]}})

    def close(self) -> None:
        """Ends the engine."""
        if self._engine is not None:
            self._engine.close()

    def refuse_new(self) -> bool:
        """Has the next requests told that the server is shutting down."""
        was_draining = self._service.admission.is_draining
        self._service.admission.is_draining = True
        return not was_draining

    async def drain(self, signal_name: str) -> None:
        """Lets answers end; those that do not in time are broken off."""
        admission = self._service.admission
        fields = {"signal": signal_name, "answers": admission.num_inside, "at_most_s": self._drain_s}
        _log.info("draining", extra={"fields": fields})
        if not await admission.wait_until_empty(self._drain_s):
            _log.warning("answers broken off", extra={"fields": {"answers": admission.num_inside}})
            await asyncio.to_thread(self.close)
            await admission.wait_until_empty(FLUSH_S)
