"""`ewe serve` in a process of its own, for the benchmarks that ask it over HTTP."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

import httpx


@contextlib.contextmanager
def ewe_serve(
    model: str, settings: Mapping[str, object], *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The server, ended in the end; gives its address once it, and every replica, is ready."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assigned = {"server.port": port, **settings}
    set_all = [part for name, value in assigned.items() for part in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "ewe.cli.main", "serve", model, *options, *set_all]
    environ = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:  # noqa: S603
        url = f"http://127.0.0.1:{port}"
        while process.poll() is None and not _is_ready(url):
            time.sleep(0.2)
        try:
            yield url
        finally:
            process.terminate()


def _is_ready(url: str) -> bool:
    try:
        health = httpx.get(f"{url}/health")
        replicas = health.json().get("replicas", {}).values()
        return httpx.get(f"{url}/ping").is_success and all(state == "ready" for state in replicas)
    except httpx.TransportError:
        return False
