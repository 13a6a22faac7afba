"""The worker processes beside rank 0: started, told what to do, watched, and ended."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import torch
from torch import distributed

from ewe.config import ModelConfig
from ewe.distributed.group import abort, group_device, join, leave, refuse_unshardable
from ewe.distributed.message import Message
from ewe.errors import ConfigError, EngineDeadError, EWEError

_LOOK_EVERY_S = 0.1
_TO_END_S = 10.0
_TO_DIE_S = 2.0  # after a collective has failed: by then the worker that it failed for is known to be dead


class Executor:
    """The workers of ranks 1 to N - 1; this process is rank 0, and the only one that talks to them.

    Each has a pipe of messages, which it obeys in order, and ends when the pipe does. Raises ConfigError or
    UnsupportedModelError before any is started if there is no way to split the model, EngineDeadError if one ends.
    """

    def __init__(self, config: ModelConfig) -> None:
        _leave_to_rank_0()
        if distributed.is_initialized():
            raise ConfigError("this process belongs to a process group: it can have one model in parts at a time")
        refuse_unshardable(config)
        device = group_device(config)
        self._parts, self._threads = config.tensor_parallel, torch.get_num_threads()
        self._files = tempfile.TemporaryDirectory(prefix="ewe-ranks-")
        self._folder = Path(self._files.name)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._death = ""
        self._workers: list[subprocess.Popen[bytes]] = []
        with self.starting():
            self._workers += [self._start(rank, device) for rank in range(1, self._parts)]
            self._wait_for_workers()
            join(0, self._parts, self._folder, device)
            self.send(Message("load", {"model": config.model_dump(mode="json")}))

    @contextmanager
    def starting(self) -> Iterator[None]:
        """What raises inside ends the workers; EngineDeadError comes in place of what their death has caused."""
        try:
            yield
        except BaseException as error:
            may_be_told = isinstance(error, EWEError) or not isinstance(error, Exception)
            broken = None if may_be_told else self.broken(error)
            self.close()
            if broken is None:
                raise
            raise broken from error

    def send(self, message: Message) -> None:
        """Has every worker do something; it need not have been done when the call returns."""
        packed = message.pack()
        try:
            for worker in self._workers:
                _pipe(worker).write(packed)
                _pipe(worker).flush()
        except OSError as error:
            raise self.broken(error) from error

    def watch(self, on_death: Callable[[EngineDeadError], object]) -> None:
        """Looks after the workers from now on; `on_death` is called, from another thread, if one has ended."""
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
        for worker in self._workers:
            with suppress(OSError):
                _pipe(worker).close()
            try:
                worker.wait(_TO_END_S)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._files.cleanup()
        torch.set_num_threads(self._threads)  # the cores were shared with the workers

    def _start(self, rank: int, device: str) -> subprocess.Popen[bytes]:
        arguments = [str(rank), str(self._parts), self._files.name, device]
        environment = {**os.environ, "LOCAL_RANK": str(rank), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with self._log(rank).open("wb") as log:
            return subprocess.Popen(  # noqa: S603 (no shell)
                [sys.executable, "-m", "ewe.distributed.worker", *arguments],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl+C is for rank 0, which then ends them
            )

    def _wait_for_workers(self) -> None:
        """Returns when all are about to join the group, which nothing could interrupt."""
        while not all((self._folder / f"ready-{rank}").exists() for rank in range(1, self._parts)):
            if self._find_death():
                raise EngineDeadError(self._death)
            time.sleep(_LOOK_EVERY_S / 10)

    def _watch(self, on_death: Callable[[EngineDeadError], object]) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            if self._find_death():
                for worker in self._workers:
                    worker.kill()  # nobody waits for one that waits for the dead
                abort()
                on_death(EngineDeadError(self._death))
                return

    def _find_death(self) -> str:
        """What ended the first worker that was found dead; empty if all live. Errors may be due to others' signals."""
        with self._lock:
            codes = [(worker.poll(), rank) for rank, worker in enumerate(self._workers, 1)]
            dead = sorted((code, rank) for code, rank in codes if code is not None)
            if dead and not self._death:
                code, rank = dead[0]
                how = f"was ended by signal {-code}" if code < 0 else f"ended with {self._last_words(rank) or code}"
                self._death = f"the process of rank {rank} (of {self._parts}) {how}"
            return self._death

    def _last_words(self, rank: int) -> str:
        lines = self._log(rank).read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _log(self, rank: int) -> Path:
        return self._folder / f"{rank}.log"


def _leave_to_rank_0() -> None:
    """Ends this process if torchrun has started it beside rank 0, which starts its workers as it does without torchrun.

    Raises ConfigError if torchrun runs on several machines.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    if os.environ["WORLD_SIZE"] != os.environ["LOCAL_WORLD_SIZE"]:
        raise ConfigError("model.tensor_parallel is for the GPUs of one machine: leave out torchrun's --nnodes")
    if os.environ["RANK"] != "0":
        sys.exit()


def _pipe(worker: subprocess.Popen[bytes]) -> IO[bytes]:
    assert worker.stdin is not None
    return worker.stdin
