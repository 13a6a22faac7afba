"""The server as a process: it listens while the model loads, answers, drains when it is told to stop, and ends."""

import asyncio
import faulthandler
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

from ewe.errors import ConfigError
from ewe.llm import LLM
from ewe.loading import OnLoad
from ewe.server.app import create_app
from ewe.server.engine_service import Service
from ewe.server.middleware import set_up_logs
from ewe.server.settings import ServerSettings
from ewe.server.start_report import StartLog, report_engine, report_start

_LONG_LOADING_S = 600.0  # then every thread's stack is printed once, and loading goes on
_FLUSH_S = 5  # for answers that were broken off to reach their readers
_log = logging.getLogger("ewe.server")


Load = Callable[[OnLoad], LLM]
"""Gives the engine, and tells how far it is."""


def serve(settings: ServerSettings, load: Load, notes: Sequence[str] = ()) -> None:
    """Serves until SIGTERM or SIGINT; load: called in a thread of its own while the server listens.

    notes: what to print beside the settings. A second signal stops at once. Raises what `load` raises, and ConfigError
    for a port that cannot be had or keys that cannot be read.
    """
    set_up_logs(settings.log_format)
    begin = time.monotonic()
    app = create_app(None, settings)
    listener = _listen(settings)
    report_start(app, settings, listener.getsockname()[1], notes)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_FLUSH_S,
        server_header=False,
    )
    server = _Server(config, app.state.service, settings.drain)
    _dump_stacks()
    loader = threading.Thread(target=server.load, args=(load, begin), name="ewe-load", daemon=True)
    loader.start()
    try:
        server.run([listener])
    finally:
        server.close()
    if server.failure is not None:
        raise server.failure


def _dump_stacks() -> None:
    """Has a process that hangs say where: on SIGUSR1, and by itself if loading takes very long."""
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1)
    faulthandler.dump_traceback_later(_LONG_LOADING_S)


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {settings.host}, port {settings.port}: {error.strerror or error}"
        ) from error


class _Server(uvicorn.Server):
    """uvicorn's server, which drains before it stops."""

    def __init__(self, config: uvicorn.Config, service: Service, drain_s: float) -> None:
        super().__init__(config)
        self.failure: BaseException | None = None
        self._service = service
        self._drain_s = drain_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._llm: LLM | None = None
        self._ending: asyncio.Task[None] | None = None

    def load(self, load: Load, begin: float) -> None:
        """Loads the engine and what it would load with its first request, and opens the service; a failure ends it."""
        log = StartLog()
        try:
            llm = load(log)
            llm.client.components.warm(log)
            report_engine(llm, time.monotonic() - begin)
        except BaseException as error:  # the main thread raises it when it has stopped
            self.failure = error
            self.should_exit = True
            return
        finally:
            log.close()
            faulthandler.cancel_dump_traceback_later()
        self._llm = llm
        self._service.open(llm)
        _log.info("ready", extra={"fields": {"model": self._service.served.names.listed[0]}})

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Runs until it is told to stop."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the next one stops at once. Called between two steps of the event loop's thread."""
        if self._loop is None or self._service.admission.is_draining:
            self.should_exit = self.force_exit = True
            return
        self._service.admission.is_draining = True
        self._loop.call_soon_threadsafe(self._begin_to_end, signal.Signals(sig).name)

    def close(self) -> None:
        """Ends the engine."""
        if self._llm is not None:
            self._llm.close()

    def _begin_to_end(self, name: str) -> None:
        self._ending = asyncio.ensure_future(self._drain(name))

    async def _drain(self, name: str) -> None:
        """Lets answers end; those that do not in time are broken off."""
        admission = self._service.admission
        _log.info(
            "draining", extra={"fields": {"signal": name, "answers": admission.num_inside, "at_most_s": self._drain_s}}
        )
        if not await admission.wait_until_empty(self._drain_s):
            _log.warning("answers broken off", extra={"fields": {"answers": admission.num_inside}})
            await asyncio.to_thread(self.close)
            await admission.wait_until_empty(_FLUSH_S)
        self.should_exit = True
