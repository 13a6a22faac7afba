"""Servers that the router starts itself, and starts again when they end."""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ewe.config.cpu_count import usable_cpus
from ewe.errors import ConfigError
from ewe.server.http.listener import LISTEN_FD
from ewe.server.router.replicas import ENGINE_DEAD, READY, UNREACHABLE, Replica

_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.5, 30.0
_LIVED_S = 60.0  # whoever ends after that is started again without much delay
_LOOK_AGAIN_S = 1.0
_REFUSED = 2  # the exit status for settings that are wrong: another start would change nothing
_STDIN, _ = os.pipe()  # of replicas: it ends when this process does, which alone holds its other end

_log = logging.getLogger("ewe.server")


class ReplicaProcess:
    """`ewe serve` as a process, behind a free port of the loopback address.

    environment: what it has beside this process' own. The socket is made here and handed over: whoever chooses a port
    for another process to bind may see it taken.
    """

    def __init__(self, replica: Replica, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._replica = replica
        self._command = command
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = asyncio.Event()
        self._was_ready = False

    async def run(self) -> None:
        """Has it run until it is stopped; raises ConfigError if it refuses its settings before it was ever ready."""
        delay = _FIRST_DELAY_S
        while not self._stopping.is_set():
            begin = time.monotonic()
            try:
                status: int | str = await self._run_once()
            except OSError as error:  # no descriptors or no memory are left now; the other replicas go on
                status = str(error)
            self._replica.state = UNREACHABLE
            if self._stopping.is_set():
                return
            if status == _REFUSED and not self._was_ready:
                raise ConfigError(f"replica {self._replica.name} cannot start; it says why above")
            delay = _FIRST_DELAY_S if time.monotonic() - begin > _LIVED_S else min(2 * delay, _LONGEST_DELAY_S)
            fields = {"replica": self._replica.name, "status": status, "again_in_s": delay}
            _log.warning("a replica ended", extra={"fields": fields})
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)

    def stop(self, kill: bool = False) -> None:
        """Has it drain and end, or end at once."""
        self._stopping.set()
        self._send(signal.SIGKILL if kill else signal.SIGTERM)

    async def _run_once(self) -> int:
        with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
            port, handle = listener.getsockname()[1], listener.fileno()
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, **self._environment, LISTEN_FD: str(handle)},
                pass_fds=(handle,),
                stdin=_STDIN,
                start_new_session=True,  # Ctrl-C is the router's alone, which drains
            )
        self._replica.restarted(f"http://127.0.0.1:{port}")
        _log.info("replica", extra={"fields": {"replica": self._replica.name, "pid": process.pid, "port": port}})
        if self._stopping.is_set():  # while it was being started
            self._send(signal.SIGTERM)
        while True:
            with suppress(TimeoutError):
                return await asyncio.wait_for(process.wait(), _LOOK_AGAIN_S)
            self._was_ready |= self._replica.state == READY
            if self._replica.state == ENGINE_DEAD or self._replica.is_hung:
                self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def device_environment(number: int, num_replicas: int, gpus_each: int, environ: Mapping[str, str]) -> dict[str, str]:
    """What gives replica `number` its own share of the machine: GPUs if there are any, else cores.

    Raises ConfigError if there are fewer GPUs than all of them need.
    """
    named = environ.get("CUDA_VISIBLE_DEVICES")
    gpus = [str(index) for index in range(_num_gpus())] if named is None else named.split(",")
    gpus = [gpu for gpu in gpus if gpu not in ("", "-1")]  # -1 hides them all
    if not gpus or not gpus_each:
        threads = max(1, usable_cpus() // num_replicas)
        return {} if "OMP_NUM_THREADS" in environ else {"OMP_NUM_THREADS": str(threads)}
    if len(gpus) < num_replicas * gpus_each:
        needed = f"{num_replicas} replicas with {gpus_each} each"
        raise ConfigError(f"--replicas: there are {len(gpus)} GPUs, too few for {needed}; or set model.device=cpu")
    own = gpus[number * gpus_each : (number + 1) * gpus_each]
    return {"CUDA_VISIBLE_DEVICES": ",".join(own)}


def _num_gpus() -> int:
    """NVIDIA's GPUs in this machine, counted without loading torch."""
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
