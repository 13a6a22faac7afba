"""The engine's process, as the process that starts it and serves HTTP holds it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any

from ewe.config import Config
from ewe.config.gpu_driver import has_gpu_driver
from ewe.config.loading import LoadStep, OnLoad
from ewe.errors import ConfigError, EngineDeadError, EWEError
from ewe.server.own_process import engine_messages as wire
from ewe.server.own_process.message_pipe import MessagePipe
from ewe.server.own_process.remote_engine import RemoteEngine
from ewe.server.settings import ServerSettings

_TO_END_S = 60.0  # for a step that is under way
_MODULE = "ewe.server.own_process.engine_child"


class EngineProcess:
    """Starts the process; made by the main thread, since it ends with the thread that made it.

    module: what the process runs. is_closed: whether it was told to end. The signals of a terminal do not reach it:
    this process drains, and then closes it. It ends when this process does, however that ends. Raises ConfigError for
    what cannot be served across processes.
    """

    def __init__(self, config: Config, settings: ServerSettings, module: str = _MODULE) -> None:
        refuse_unservable(config)
        self._config = config
        own, others = socket.socketpair()
        with others:
            self._process = subprocess.Popen(  # noqa: S603 (no shell)
                [sys.executable, "-P", "-m", module],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=others.fileno(),
                start_new_session=True,
            )
        self.pipe = MessagePipe(own)
        self._closing = threading.Lock()
        self.is_closed = False
        with suppress(OSError):  # one that ended at once is noticed by who reads
            self.pipe.send({"config": config.model_dump(mode="json"), "log_format": settings.log_format})

    def open(self, on_load: OnLoad) -> RemoteEngine:
        """The engine once it is loaded; raises what loading it raises, or EngineDeadError."""
        beside = ThreadPoolExecutor(1, thread_name_prefix="ewe-load-tokenizer")
        tokenizer = beside.submit(_tokenizer, self._config)
        beside.shutdown(wait=False)
        facts = self._wait_until_ready(on_load)
        return RemoteEngine(self, facts, self._config, tokenizer.result())

    def _wait_until_ready(self, on_load: OnLoad) -> wire.EngineFacts:
        while (message := self.pipe.receive()) is not None:
            if "failed" in message:
                error = wire.read_error(message["failed"])
                raise error if isinstance(error, EWEError | OSError) else EngineDeadError(str(error))
            if "ready" in message:
                return wire.FACTS.read(message["ready"])
            on_load(LoadStep(**message["load"]))
        raise self.broken()

    def broken(self) -> EngineDeadError:
        """The error for those who waited for a process that has hung up; says how it ended."""
        if self.is_closed:
            return EngineDeadError("the engine was closed")
        try:
            status = self._process.wait(_TO_END_S)
        except subprocess.TimeoutExpired:
            return EngineDeadError("the engine's process has hung up")
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return EngineDeadError(f"the engine's process {how}")

    def close(self) -> None:
        """Has it abort what is under way and end, and ends it where that takes too long; again does nothing."""
        with self._closing:
            if self.is_closed:
                return
            self.is_closed = True
            with suppress(OSError):  # it has gone already
                self.pipe.send({"do": "close"})
            try:
                self._process.wait(_TO_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it at once if nobody has closed it: it may still be loading."""
        if not self.is_closed:
            self._process.kill()
        self._process.wait()
        self.pipe.hang_up()


def _tokenizer(config: Config) -> Any:
    from ewe.engine.models.pretrained import load_tokenizer  # imports transformers, and that takes seconds

    return load_tokenizer(config.model)


def is_apart(config: Config, settings: ServerSettings) -> bool:
    """Whether the engine gets a process of its own: as the settings say, else on a GPU where nothing stands against it.

    On a GPU a step takes about as long as the HTTP of its readers; on a CPU the step is what takes time.
    """
    if settings.engine_process is not None:
        return settings.engine_process
    return config.model.device != "cpu" and has_gpu_driver() and not _unservable(config)


def refuse_unservable(config: Config) -> None:
    """Raises ConfigError for what the two processes cannot do together yet."""
    for name, reason in _unservable(config).items():
        raise ConfigError(f"server.engine_process: {name} does not go with it, as {reason}: set one of them only")


def _unservable(config: Config) -> dict[str, str]:
    """Why an engine cannot be served from a process of its own, by setting."""
    reasons = {}
    if config.longterm.path is not None:
        reasons["longterm.path"] = "memories are read and changed in the server's process"
    if config.model.tensor_parallel > 1 and "TORCHELASTIC_RUN_ID" in os.environ:
        reasons["model.tensor_parallel"] = "torchrun's first process is the engine's"
    return reasons
