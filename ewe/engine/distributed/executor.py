"""The worker processes beside rank 0: started, told what to do, watched, and ended."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import distributed

from ewe.config import ModelConfig
from ewe.engine.distributed.group import abort, group_device, join, leave, refuse_unshardable
from ewe.engine.distributed.link import Link
from ewe.engine.distributed.message import Message
from ewe.engine.distributed.torchrun import is_started_by_torchrun, meet_workers
from ewe.errors import ConfigError, EngineDeadError, EWEError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

_LOOK_EVERY_S = 0.1
_TO_DIE_S = 2.0  # after a collective has failed: by then the worker that it failed for is known to be dead


class Executor:
    """The workers of ranks 1 to N - 1; this process is rank 0, and the only one that talks to them.

    It starts them, or torchrun has. Each obeys its messages in order, and ends when its link does. Raises ConfigError
    or UnsupportedModelError before any is started if there is no way to split the model, EngineDeadError if one ends.
    """

    def __init__(self, config: ModelConfig) -> None:
        if distributed.is_initialized():
            raise ConfigError("this process belongs to a process group: it can have one model in parts at a time")
        refuse_unshardable(config)
        device = group_device(config)
        self._parts, self._threads = config.tensor_parallel, torch.get_num_threads()
        self._files = tempfile.TemporaryDirectory(prefix="ewe-ranks-")
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._death = ""
        self._links: list[Link] = []
        with self.starting():
            store = self._meet_workers()
            self.send(Message("load", {"model": config.model_dump(mode="json"), "device": device}))
            join(0, self._parts, store, device)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """What raises inside ends the workers; EngineDeadError comes in place of what their death has caused."""
        try:
            yield
        except BaseException as error:
            is_expected = isinstance(error, EWEError) or not isinstance(error, Exception)
            broken = None if is_expected else self.broken(error)
            self.close()
            if broken is None:
                raise
            raise broken from error

    def send(self, message: Message) -> None:
        """Has every worker do something; it need not have been done when the call returns."""
        packed = message.pack()
        try:
            for link in self._links:
                link.send(packed)
        except OSError as error:
            raise self.broken(error) from error

    def watch(self, on_death: Callable[[EngineDeadError], object]) -> None:
        """Looks after the workers from now on; `on_death` is called, from another thread, if one has ended.

        A pass that waits for a worker out of reach may be under way then, and ends within a minute.
        """
        threading.Thread(target=self._watch, args=(on_death,), name="ewe-ranks", daemon=True).start()

    def broken(self, cause: BaseException) -> EngineDeadError:
        """The error to raise when ranks may disagree: it names the worker that died, or else the cause."""
        give_up = time.monotonic() + _TO_DIE_S
        while not self._find_death() and time.monotonic() < give_up:
            time.sleep(_LOOK_EVERY_S / 10)
        return EngineDeadError(self._death or f"the ranks may disagree after {type(cause).__name__}: {cause}")

    def close(self) -> None:
        """Ends the workers and the group; may be called again."""
        if self._closed.is_set():
            return
        self._closed.set()
        with suppress(EngineDeadError):
            self.send(Message("close"))
        leave()
        for link in self._links:
            link.close()
        self._files.cleanup()
        torch.set_num_threads(self._threads)  # the cores were shared with the workers

    def _meet_workers(self) -> Store:
        """Starts the workers, or meets torchrun's; returns when all are about to join: nothing could interrupt that."""
        if is_started_by_torchrun():
            store, self._links = meet_workers()
        else:
            path = str(Path(self._files.name) / "store")
            self._links += [self._start(rank, path) for rank in range(1, self._parts)]
            store = distributed.FileStore(path, self._parts)  # type: ignore[attr-defined]
        for link in self._links:
            link.wait_for_first()
        if self._find_death():  # after all: looking takes what has come from any of them
            raise EngineDeadError(self._death)
        return store

    def _start(self, rank: int, store: str) -> Link:
        environment = {**os.environ, "LOCAL_RANK": str(rank), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        own, others = socket.socketpair()
        path = Path(self._files.name) / f"{rank}.log"
        with path.open("wb") as log, others:
            process = subprocess.Popen(  # noqa: S603 (no shell)
                [sys.executable, "-m", "ewe.engine.distributed.worker", str(rank), str(self._parts), store],
                env=environment,
                stdin=others.fileno(),
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl+C is for rank 0, which then ends them
            )
        return Link(rank, own, process, path)

    def _watch(self, on_death: Callable[[EngineDeadError], object]) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            if self._find_death():
                for link in self._links:
                    link.cut()  # nobody waits for one that waits for the dead
                abort()
                on_death(EngineDeadError(self._death))
                return

    def _find_death(self) -> str:
        """What ended the first worker that was found dead; empty if all live. Errors may be due to others' signals."""
        with self._lock:
            deaths = [(*link.death(), link.rank) for link in self._links]
            dead = sorted(death for death in deaths if death[1])
            if dead and not self._death:
                _, how, rank = dead[0]
                self._death = f"the process of rank {rank} (of {self._parts}) {how}"
            return self._death
