"""Messages between two processes: JSON, each behind its length in bytes. Nothing is pickled."""

import json
import socket
import struct
import threading
from typing import Any

from ewe.text.jsonable import jsonable

_LENGTH = struct.Struct(">I")


class MessagePipe:
    """One end of a connected stream socket; messages are what JSON can hold, NaN and infinities included.

    `send` may be called from any thread, `receive` from one at a time.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb")
        self._sending = threading.Lock()

    def send(self, message: Any) -> None:
        """Sends a message, and waits while the other end is slow to read. Raises OSError if that has gone."""
        body = packed(message)
        with self._sending:
            self._connection.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self) -> Any:
        """The next message; waits for it. None when the other end has gone, be it in the middle of one."""
        try:
            head = self._stream.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                return None
            (size,) = _LENGTH.unpack(head)
            body = self._stream.read(size)
        except OSError:
            return None
        return json.loads(body) if len(body) == size else None

    def hang_up(self) -> None:
        """Tells both ends that nothing more will come."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # the other end was faster
            return


def packed(message: Any) -> bytes:
    """A message as JSON; what a component of the user's put into it and JSON does not know becomes text."""
    try:
        return json.dumps(message, separators=(",", ":"), default=jsonable).encode()
    except (TypeError, ValueError):  # keys of other kinds
        return json.dumps(jsonable(message), separators=(",", ":")).encode()
