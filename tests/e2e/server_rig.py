"""A server in a thread, around an engine that the test holds, and `ewe serve` as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

uvicorn = pytest.importorskip("uvicorn", reason="the server's packages are not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")
pytest.importorskip("prometheus_client", reason="the server's packages are not installed")

LONG = 400.0
# One for all: making a client takes longer than most requests. Connections are not kept, since servers come and go.
http = httpx.Client(timeout=LONG, limits=httpx.Limits(max_connections=None, max_keepalive_connections=0))
PROMPT = "Who was Nurim Nurner?"


@cache
def _openai_transport() -> Any:
    import openai

    return openai.DefaultHttpxClient(timeout=LONG)


def openai_client(url: str, strict: bool = False) -> Any:
    """The openai client of a server, as it comes or with every answer validated; one transport for all of them."""
    import openai

    return openai.OpenAI(
        base_url=f"{url}/v1",
        api_key="none",
        max_retries=0,
        http_client=_openai_transport(),
        _strict_response_validation=strict,
    )


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """The app behind a port of its own; gives its address, without a slash at the end."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", proxy_headers=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(LONG)


def wait_for(condition: Any, what: str, every_s: float = 0.01) -> None:
    """Waits until something is so; every_s: asking a process more often takes a third of its time from it."""
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(every_s)


def wait_until_idle(llm: Any) -> None:
    """Waits until the engine has nothing to do, then looks whether every block is accounted for."""
    wait_for(lambda: not llm.client.engine.core.active.sequences, "the engine is idle")
    status = llm.client.status()
    assert (status.running, status.waiting, status.cache_usage) == (0, 0, 0.0)
    llm.check_integrity()


def _status(url: str) -> int:
    return int(http.get(url).status_code)


def events_of(text: str) -> list[str]:
    """The data of a stream's records."""
    return [record.removeprefix("data: ") for record in text.split("\n\n") if record.startswith("data: ")]


class ServerProcess:
    """`ewe serve` with its output; a context manager that leaves no process behind."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        command = [sys.executable, "-m", "ewe.cli.main", "serve", "--port", "0", *arguments]
        quiet = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **quiet, **environment},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        """Its address, as soon as it says so."""
        pattern = re.compile(r"listens on (\S+);")
        wait_for(lambda: pattern.search(self.output) or self.process.poll() is not None, "the server listens")
        found = pattern.search(self.output)
        assert found, self.output
        return found[1]

    def wait_until_ready(self) -> str:
        url = self.url
        wait_for(lambda: self.process.poll() is not None or _status(f"{url}/ready") == 200, "ready", 0.1)
        assert self.process.poll() is None, self.output
        return url

    def stop(self, signal: int) -> int:
        """Sends a signal and gives the exit status."""
        self.process.send_signal(signal)
        return self.wait()

    def wait(self) -> int:
        status = self.process.wait(LONG)
        self._reader.join(LONG)
        return status

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
