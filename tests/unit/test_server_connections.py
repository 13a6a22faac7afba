"""Connections: bounded, and closed where their clients let them wait; the log has a line a minute about it."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the server's packages are not installed")

from ewe.errors import ConfigError
from ewe.server.http import connections
from ewe.server.http.connections import ConnectionWatch, connection_limit
from ewe.server.settings import ServerSettings


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Peer:
    """A connection that notes what becomes of it."""

    def __init__(self) -> None:
        self.end = ""

    def drop(self) -> None:
        self.end = "dropped"

    def refuse(self) -> None:
        self.end = "refused"


def test_a_new_connection_takes_the_place_of_the_one_that_waits_the_longest() -> None:
    clock = Clock()
    watch = ConnectionWatch(3, clock)
    served, idle, reading = (Peer() for _ in range(3))
    for peer in (served, idle, reading):
        watch.enter(peer, 10)
    watch.serve(served)
    watch.wait(reading, 10)
    first = Peer()
    watch.enter(first, 10)
    assert [peer.end for peer in (served, idle, reading, first)] == ["", "dropped", "", ""]
    watch.serve(first)
    watch.serve(reading)
    second = Peer()
    watch.enter(second, 10)
    assert second.end == "refused", "all others are being served"
    watch.leave(served)
    third = Peer()
    watch.enter(third, 10)
    assert third.end == ""


def test_who_lets_a_connection_wait_for_too_long_loses_it() -> None:
    clock = Clock()
    watch = ConnectionWatch(10, clock)
    slow, quick, served = Peer(), Peer(), Peer()
    watch.enter(slow, 5)
    watch.enter(quick, 20)
    watch.enter(served, 5)
    watch.serve(served)
    clock.now = 6
    watch.end_overdue()
    assert [peer.end for peer in (slow, quick, served)] == ["dropped", "", ""]
    watch.wait(slow, 5)  # what is dropped may still say something
    clock.now = 30
    watch.end_overdue()
    assert quick.end == "dropped"


def test_the_log_has_one_line_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    watch = ConnectionWatch(1, clock)
    told: list[Any] = []
    monkeypatch.setattr(connections._log, "warning", lambda _, extra: told.append(extra["fields"]))
    for second in range(120):
        clock.now = float(second)
        for _ in range(10):
            watch.enter(Peer(), 1000)
            watch.out_of_descriptors()
    first, second = (sum(fields.values()) for fields in told)
    assert (first, second) == (1, 60 * 20 - 1), "all that happened since the line before"


def test_the_limit_comes_from_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    for descriptors, most in ((1024, 512), (1 << 20, 8192), (connections.resource.RLIM_INFINITY, 8192), (1, 1)):
        monkeypatch.setattr(connections.resource, "getrlimit", lambda _, soft=descriptors: (soft, soft))
        assert connection_limit(ServerSettings()) == most
    monkeypatch.setattr(connections.resource, "getrlimit", lambda _: (1024, 1024))
    assert connection_limit(ServerSettings(max_connections=700)) == 700
    with pytest.raises(ConfigError, match=r"max_connections: 800 .* at most 768"):
        connection_limit(ServerSettings(max_connections=800))


SERVER = """
    import asyncio, resource, socket, sys, threading
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    asyncio.constants.ACCEPT_RETRY_DELAY = 0.05  # a second, until it looks again whether there are descriptors
    from ewe.server.http.draining import DrainingServer
    from ewe.server.http.listener import listen
    from ewe.server.request_handling.middleware import set_up_logs
    from ewe.server.settings import ServerSettings

    class Server(DrainingServer):
        def refuse_new(self): return True
        async def drain(self, name): pass

    async def app(scope, receive, send):
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})

    set_up_logs("text")
    settings = ServerSettings(port=0, **eval(sys.argv[1]))
    listener = listen(settings)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(1), server.handle_exit(15, None)), daemon=True).start()
    server = Server(app, settings)
    server.run([listener])
"""
ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Child:
    """A server of 64 descriptors as a process, and bare connections to it."""

    def __init__(self, **settings: Any) -> None:
        self.sockets: list[Any] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SERVER), repr(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def connect(self, first: bytes = b"") -> Any:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=400)
        connection.sendall(first)
        self.sockets.append(connection)
        return connection

    def end(self) -> str:
        """Stops it; what it wrote to the log."""
        for connection in self.sockets:
            connection.close()
        _, log = self.process.communicate(b"x", timeout=400)
        assert self.process.returncode == 0
        return log.decode()


def read_to_end(connection: Any) -> bytes:
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def test_more_silent_connections_than_descriptors_do_not_stop_the_server() -> None:
    """Silent from the first byte on, in the head, and in the body."""
    child = Child()
    for first in (b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n"):
        with ThreadPoolExecutor(90) as pool:  # each waits a second where the backlog is full
            list(pool.map(child.connect, [first] * 90))
        answer = child.connect(ASK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert read_to_end(answer).endswith(b"ok"), first
    log = child.end()
    assert "Traceback" not in log
    assert log.count("\n") == 1, log


def test_slow_heads_bodies_and_silent_connections_are_closed() -> None:
    child = Child(header_timeout=0.1, body_timeout=0.1, keep_alive=1)
    body = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n12"
    silent = [child.connect(first) for first in (b"", b"GET / HT", body)]
    assert [read_to_end(connection) for connection in silent] == [b"", b"", b""]
    kept = child.connect(ASK)
    assert read_to_end(kept).endswith(b"ok"), "and then it is closed"
    assert child.end() == ""


def test_a_body_of_tiny_chunks_is_broken_off_and_one_of_whole_chunks_is_not() -> None:
    child = Child()
    head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    tiny = child.connect(head + b"1\r\nx\r\n" * 600)
    assert read_to_end(tiny) == b""
    head = head.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    chunk = b"40\r\n" + b"x" * 64 + b"\r\n"
    whole = child.connect(head + chunk * 2000 + b"0\r\n\r\n")
    assert read_to_end(whole).endswith(b"ok")
    assert child.end() == ""


def test_what_is_no_http_does_not_fill_the_log() -> None:
    child = Child()
    for _ in range(20):
        for first in (
            b"\x16\x03\x01 no http\r\n\r\n",
            ASK.replace(b"host: x", b"host: x\r\nconnection: upgrade\r\nupgrade: y"),
        ):
            connection = child.connect(first)
            connection.shutdown(socket.SHUT_WR)
            read_to_end(connection)
    log = child.end()
    assert log.count("\n") <= 3, log
