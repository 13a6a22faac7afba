"""One HTTP connection, which tells its watch when it waits for its client, and ends where that costs too much."""

import asyncio
import json
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ewe.server.http.connections import ConnectionWatch
from ewe.server.http.error_responses import RefusedError
from ewe.server.settings import ServerSettings

_SLICE = 4096  # bytes that are parsed at once
_FREE_CHUNKS = 512  # of one body, before their size is looked at
_LEAST_CHUNK = 16  # bytes on average: whoever sends smaller ones makes us parse more than he sends
_LEAST_RATE = 1 << 15  # bytes of a body per second, beside the time between two parts
_FULL = RefusedError(
    503, "the server has as many connections as it takes; try again in a moment", code="too_many_connections"
)


class _Parser(h11.Connection):
    """h11's connection, which counts the chunks of a body."""

    chunks = chunk_bytes = 0
    _has_length = False

    @property
    def is_in_plain_body(self) -> bool:
        """Whether more of a body is to come that has a length and no chunks, and takes no time to parse."""
        return self._has_length and self.their_state is h11.SEND_BODY

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.chunks = self.chunk_bytes = 0
            self._has_length = b"transfer-encoding" not in dict(event.headers)
        elif isinstance(event, h11.Data):
            self.chunks += 1
            self.chunk_bytes += len(event.data)
        return event


class HttpConnection(H11Protocol):
    """uvicorn's protocol with the patience of the settings.

    header_timeout: from the first byte of a request's head to its end, or to the first byte of the first request;
    body_timeout: between two parts of a body, in all parts of it beside the time that a slow client needs for what has
    come, or while the client takes nothing of its answer; keep_alive: from an answer to the next request.
    """

    def __init__(self, watch: ConnectionWatch, settings: ServerSettings, **uvicorn_options: Any) -> None:
        super().__init__(**uvicorn_options)
        self.conn = self._parser = _Parser(h11.SERVER)
        self._watch = watch
        self._settings = settings
        self._has_begun = False  # whether part of a request's head is there
        self._is_due = False  # whether more of a body is awaited, and would be read
        self._body_waited_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for the first request."""
        super().connection_made(transport)
        _send_at_once(transport.get_extra_info("socket"))
        self._watch.enter(self, self._settings.header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends."""
        self._watch.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes in what the client sends, in small parts where it can cost so much that it is to be broken off."""
        is_new = not self._is_busy and not self._has_begun
        self._body_waited_s += self._watch.waited_s(self) if self._is_due else 0.0
        start = 0
        while start < len(data):
            size = len(data) if self._parser.is_in_plain_body else _SLICE
            super().data_received(data[start : start + size])
            start += size
            chunks = self._parser.chunks
            if chunks > _FREE_CHUNKS and self._parser.chunk_bytes < _LEAST_CHUNK * chunks:
                self.drop()
            if self.transport.is_closing():
                return
        self._has_begun = not self._is_busy
        if not self._is_busy and is_new:
            self._watch.wait(self, self._settings.header_timeout)
        elif self._is_busy:
            self._note()

    def on_response_complete(self) -> None:
        """Begins to wait for the next request, unless it is there already."""
        self._has_begun = self._is_due = False
        self._body_waited_s = 0.0
        super().on_response_complete()
        self._note()

    def pause_writing(self) -> None:
        """Begins to wait for a client that takes nothing more."""
        super().pause_writing()
        self._watch.wait(self, self._settings.body_timeout)

    def resume_writing(self) -> None:
        """Waits for what comes after that."""
        super().resume_writing()
        self._note()

    def drop(self) -> None:
        """Ends at once, whatever has not been sent."""
        self.transport.abort()

    def refuse(self) -> None:
        """Says that there is no room, and ends."""
        body = json.dumps(_FULL.body).encode()
        headers = {**_FULL.headers, "content-type": "application/json", "connection": "close"}
        lines = [f"{name}: {value}" for name, value in {**headers, "content-length": len(body)}.items()]
        self.transport.write("\r\n".join(["HTTP/1.1 503 Service Unavailable", *lines, "", ""]).encode() + body)
        self.transport.close()

    @property
    def _is_busy(self) -> bool:
        """Whether a request is being read or answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _note(self) -> None:
        if self.flow.write_paused:  # it has waited for its client since then, whatever that sends meanwhile
            return
        if not self._is_busy:
            self._watch.wait(self, self._settings.keep_alive)
        elif self.cycle.more_body:
            self._is_due = not self.flow.read_paused
            most = self._settings.body_timeout
            left = most + self._parser.chunk_bytes / _LEAST_RATE - self._body_waited_s
            self._watch.wait(self, min(most, left))
        else:
            self._watch.serve(self)


def _send_at_once(connection: socket.socket | None) -> None:
    """Has a part of a stream sent before the client has acknowledged the one before it, which takes clients 40 ms.

    asyncio does so only where the listening socket names its protocol, which `socket.create_server` leaves open.
    """
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
