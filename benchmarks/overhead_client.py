"""The clients of `server_overhead`, which have a process of their own; it starts without torch."""

from __future__ import annotations

import json
import re
import selectors
import socket
import statistics
import time

BATCH = 16
HOST = "127.0.0.1"
_TEXT = re.compile(rb'"text":"[^"]')


def prompt(number: int) -> list[int]:
    """A prompt of a few tokens."""
    return [10 + number, 40, 70 + number]


def time_streams(port: int, num_tokens: int, with_events: bool) -> float:
    """The same where streams of the server are read; called in the clients' process.

    One thread notes what comes when and reads it afterwards, so that the clients take little of the machine.
    """
    arrivals: dict[socket.socket, list[tuple[float, bytes]]] = {}
    with selectors.DefaultSelector() as selector:
        for number in range(BATCH):
            connection = _ask(port, number, num_tokens, with_events)
            selector.register(connection, selectors.EVENT_READ)
            arrivals[connection] = []
        while selector.get_map():
            for key, _ in selector.select():
                connection = key.fileobj  # type: ignore[assignment]
                data = connection.recv(1 << 16)
                arrivals[connection].append((time.perf_counter(), data))
                if not data:
                    selector.unregister(connection)
                    connection.close()
    return statistics.mean(_first_to_last(seen) / (num_tokens - 1) for seen in arrivals.values())


def _ask(port: int, number: int, num_tokens: int, with_events: bool) -> socket.socket:
    """A connection that has asked for a stream."""
    wanted = {"prompt": prompt(number), "max_tokens": num_tokens, "ignore_eos": True, "temperature": 0, "stream": True}
    body = json.dumps({**wanted, "ewe": {"events": with_events}}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n"
    connection = socket.create_connection((HOST, port))
    connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def _first_to_last(seen: list[tuple[float, bytes]]) -> float:
    """Seconds from the first text to the last; the last record, which tells of the whole answer, has none."""
    times = [when for when, data in seen if _TEXT.search(data)]
    return times[-1] - times[0]
