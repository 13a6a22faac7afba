"""Servers that do what a test says, for what stands before servers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Actor(BaseHTTPRequestHandler):
    """A server's side of one connection; what it does with a request is `play` of its server."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        if self.path == "/ping":
            told = {"capacity": self.server.capacity, "error": {"code": "loading"}}
            self.answer(self.server.ping_status, told)
        else:
            self._act()

    def do_POST(self) -> None:
        self._act()

    def answer(self, status: int, content: Any, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self, *pieces: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self._send_piece(piece)

    def end_stream(self, *pieces: str) -> None:
        for piece in (*pieces, ""):
            self._send_piece(piece)

    def lose(self) -> None:
        """Closes the connection, whatever has been sent."""
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass

    def _act(self) -> None:
        self.server.seen.append((self.command, self.path, dict(self.headers), self._body()))
        self.server.play(self)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", "0")))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send_piece(self, piece: str) -> None:
        self.wfile.write(f"{len(piece.encode()):x}\r\n{piece}\r\n".encode())
        self.wfile.flush()


class Server(ThreadingHTTPServer):
    """A server that plays a part, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Actor)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.ping_status = 200
        self.capacity: int | None = None
        self.play: Callable[[Actor], None] = lambda actor: actor.answer(200, {"by": self.server_port})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def running(count: int) -> Iterator[list[Server]]:
    """So many servers, each in a thread."""
    made = [Server() for _ in range(count)]
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in made]
    for thread in threads:
        thread.start()
    yield made
    for server, thread in zip(made, threads, strict=True):
        server.shutdown()
        server.server_close()
        thread.join()
