"""What joins rank 0 to a worker: a socket that brings messages there and signs of life back."""

import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

from ewe.errors import EngineDeadError

TO_COME_S = 300.0  # some may import torch from a slow disk
BEAT_S = 1.0
# More than any pause between two turns of a worker's interpreter, and little enough to tell requests within 10 s.
SILENT_S = 8.0
_TO_END_S = 10.0


class Link:
    """Rank 0's end. process: of a worker that it has started itself, whose output is in the file `log`."""

    def __init__(
        self,
        rank: int,
        connection: socket.socket,
        process: subprocess.Popen[bytes] | None = None,
        log: Path | None = None,
    ) -> None:
        self.rank, self._connection, self._process, self._log = rank, connection, process, log
        self._has_hung_up, self._beats = False, 0
        self._silent_s, self._looked = 0.0, time.monotonic()

    def send(self, packed: bytes) -> None:
        """Sends a whole message, which need not have been read when the call returns; OSError: nobody will read it."""
        self._connection.sendall(packed)

    def wait_for_first(self) -> None:
        """Returns when the worker is about to join the group, or has ended; raises EngineDeadError if neither comes."""
        self._connection.settimeout(TO_COME_S)
        try:
            self._has_hung_up = not self._connection.recv(1)
        except TimeoutError as error:
            raise EngineDeadError(f"the process of rank {self.rank} did not start within {TO_COME_S:.0f} s") from error
        except ConnectionError:
            self._has_hung_up = True
        self._connection.settimeout(None)
        if self._has_hung_up and self._process is not None:
            self._process.wait()  # its end is closed by nothing else

    def death(self) -> tuple[int, str]:
        """How the worker ended: an order, by which causes come before consequences, and the words; empty if it lives.

        It counts as dead, too, if it gave signs of life and has given none for `SILENT_S`.
        """
        if self._process is not None and (code := self._process.poll()) is not None:
            return code, f"was ended by signal {-code}" if code < 0 else f"ended with {self._last_words() or code}"
        self._listen()
        if self._has_hung_up and self._process is None:
            return 0, "has ended (its own output says why)"
        if self._beats and self._silent_s > SILENT_S:
            return 0, f"has given no sign of life for {SILENT_S:.0f} s"
        return 0, ""

    def cut(self) -> None:
        """Ends the worker now, as far as that can be done from here; what waits to send to it fails."""
        if self._process is not None:
            self._process.kill()
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hangs up, and waits until a worker that was started here has ended."""
        self._connection.close()
        if self._process is None:
            return
        try:
            self._process.wait(_TO_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        """Reads what has come. A pause of this process itself (stopped, suspended) is not held against the worker."""
        now = time.monotonic()
        self._silent_s += min(now - self._looked, BEAT_S)
        self._looked = now
        try:
            while beats := self._connection.recv(1 << 12, socket.MSG_DONTWAIT):
                self._beats, self._silent_s = self._beats + len(beats), 0.0
            self._has_hung_up = True
        except BlockingIOError:
            return
        except OSError:
            self._has_hung_up = True

    def _last_words(self) -> str:
        assert self._log is not None
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def beat(connection: socket.socket) -> None:
    """From now on gives rank 0 a sign of life every `BEAT_S`, from a thread of its own."""

    def run() -> None:
        with suppress(OSError):  # rank 0 has gone: whoever reads from it notices
            while True:
                connection.sendall(b".")
                time.sleep(BEAT_S)

    threading.Thread(target=run, name="ewe-beat", daemon=True).start()
