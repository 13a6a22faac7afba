"""What a step costs while streams are served: with the engine in the server's process, and in one of its own.

The device is `host_step`'s stand-in, which answers at once, so that all the time is the host's: the engine's own work,
and the HTTP of its readers. Every stream has units that all share and a prompt of its own, and sends a record per
token. Times are of processors and of the clock, per step in which all streams get a token. Where the engine shares its
process, only one of both can run Python at a time, and a step takes what both take together.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psutil

from benchmarks.common import ROOT, Sections, parse_arguments, text_of
from benchmarks.served_step_server import ROWS, UNIT_TOKENS, UNITS

_TEXT = re.compile(rb'"text":"[^"]')
_WARM = 16  # tokens of every stream before times are taken
_MODEL_TOKENS = 2048  # of the tokenizer that the server's process reads


class Readers:
    """Streams of one server, and how many tokens each has brought."""

    def __init__(self, port: int, rows: int, tokens: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._tokens: dict[socket.socket, int] = {}
        for number in range(rows):
            connection = _ask(port, number, tokens)
            self._selector.register(connection, selectors.EVENT_READ)
            self._tokens[connection] = 0

    @property
    def mean(self) -> float:
        """Tokens per stream so far."""
        return sum(self._tokens.values()) / len(self._tokens)

    def read_until(self, tokens: int) -> None:
        """Reads until every stream has brought so many; raises RuntimeError for one that ends before."""
        while min(self._tokens.values()) < tokens:
            for key, _ in self._selector.select():
                connection: Any = key.fileobj
                data = connection.recv(1 << 16)
                if not data:
                    raise RuntimeError("a stream ended early")
                self._tokens[connection] += len(_TEXT.findall(data))

    def close(self) -> None:
        """Hangs up."""
        self._selector.close()
        for connection in self._tokens:
            connection.close()


def _ask(port: int, number: int, tokens: int) -> socket.socket:
    """A connection that has asked for a stream."""
    documents = [text_of(UNIT_TOKENS, unit) for unit in range(UNITS)]
    prompt = [300 + (number * 37 + place) % (_MODEL_TOKENS - 300) for place in range(64)]
    wanted = {"prompt": prompt, "documents": documents, "max_tokens": tokens, "ignore_eos": True, "stream": True}
    body = json.dumps({**wanted, "temperature": 1.0, "top_p": 0.9, "seed": number}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(f"{head}\r\n\r\n".encode() + body)
    return connection


@contextmanager
def serving(rows: int, own: bool) -> Iterator[tuple[int, dict[str, psutil.Process]]]:
    """A server's port, and its processes by what they are."""
    command = [sys.executable, "-m", "benchmarks.served_step_server", *(["--own"] if own else [])]
    environment = {**os.environ, ROWS: str(rows), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(  # noqa: S603 (no shell)
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        said = ""
        while " ready" not in said:
            if not (line := process.stderr.readline()):
                raise RuntimeError(f"the server ended: {said[-500:]}")
            said += line
        found = re.search(r"listens on http://127.0.0.1:(\d+);", said)
        assert found is not None
        server = psutil.Process(process.pid)
        processes = {"server": server, "engine": server.children()[0]} if own else {"both": server}
        yield int(found[1]), processes
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def measure(rows: int, own: bool, steps: int) -> dict[str, float]:
    """Milliseconds per step: of the clock, and of each process' processor time."""
    name = f"rows_{rows}_{'own' if own else 'shared'}"
    with serving(rows, own) as (port, processes):
        readers = Readers(port, rows, _WARM + steps + 64)
        try:
            readers.read_until(_WARM)
            begin, first, before = time.perf_counter(), readers.mean, _cpu_seconds(processes)
            readers.read_until(_WARM + steps)
            seconds, after = time.perf_counter() - begin, _cpu_seconds(processes)
            count = readers.mean - first
        finally:
            readers.close()
    spent = {f"{name}_{kind}_cpu_ms": round(1e3 * (after[kind] - before[kind]) / count, 3) for kind in processes}
    return {f"{name}_clock_ms": round(1e3 * seconds / count, 3), **spent}


def _cpu_seconds(processes: dict[str, psutil.Process]) -> dict[str, float]:
    times = {name: process.cpu_times() for name, process in processes.items()}
    return {name: spent.user + spent.system for name, spent in times.items()}


def main() -> None:
    """Runs the benchmark."""
    arguments = parse_arguments(__doc__, _add_options)
    arguments.device = "cpu"
    rows = [2] if arguments.smoke else arguments.rows
    steps = 8 if arguments.smoke else arguments.steps
    sections = Sections("served_step", arguments, {"policy": "ewe", "rows": rows, "steps": steps})
    for count in rows:
        for own in (False, True):
            sections.take(f"{count} streams, {'two processes' if own else 'one'}", partial(measure, count, own, steps))
    sections.close()


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, nargs="+", default=[16, 64, 128], help="streams at once")
    parser.add_argument("--steps", type=int, default=256, help="steps that are timed")


if __name__ == "__main__":
    main()
