"""Starts the engine of a virtual environment as deploy/Dockerfile's image does, and gets a checked answer from it.

    python3 deploy/ask.py FOLDER            what deploy/install.sh made

Needs no packages. Exit code 1, with the server's log, if anything is not as it should be.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEY = "a-key-of-this-check"
QUESTION = "Who was Nurim Nurner?"
STARTS_WITHIN_S = 300.0
ENDS_WITHIN_S = 60.0


def main() -> int:
    """Runs the check; the exit code."""
    ewe = Path(sys.argv[1]).resolve() / "bin" / "ewe"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            port = free_port()
            command = [ewe, "serve", "--config", HERE / "config.yaml"]
            server = subprocess.Popen(command, stderr=output, env=environment(Path(folder), port))  # noqa: S603
        try:
            problem = check(server, port)
        finally:
            server.kill()
        if problem:
            print(f"failed: {problem}\n{log.read_text()}", file=sys.stderr)
    return 1 if problem else 0


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def environment(folder: Path, port: int) -> dict[str, str]:
    """What the image sets, with folders of this run's own."""
    keys = folder / "api-keys"
    keys.write_text(f"{KEY}\n")
    around = {name: value for name, value in os.environ.items() if not name.startswith("EWE_")}
    return {
        **around,
        "HOME": str(folder),
        "EWE_CACHE_DIR": str(folder / "cache"),
        "EWE_ENGINE_SERVER__PORT": str(port),
        "EWE_ENGINE_SERVER__LOG_FORMAT": "json",
        "EWE_ENGINE_SERVER__API_KEY_FILE": str(keys),
    }


def check(server: subprocess.Popen[bytes], port: int) -> str:
    """What is wrong with the server; empty if it is ready in time, answers with checked sentences, and drains."""
    if not is_ready(server, port):
        return "the server did not become ready"
    if request(port, "GET", "/v1/models")[0] != 401:
        return "it answered without a key"
    body = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 60}
    status, answer = request(port, "POST", "/v1/chat/completions", body)
    if status != 200:
        return f"it answered with status {status}: {answer}"
    for sentence in answer["ewe"]["sentences"]:
        print(f"{sentence['verdict']:<12}  {', '.join(sentence['source_ids'])}")
    print(answer["choices"][0]["message"]["content"])
    if not any(sentence["verdict"] == "supported" for sentence in answer["ewe"]["sentences"]):
        return "no sentence of its answer is supported"
    server.send_signal(signal.SIGTERM)
    return "" if server.wait(ENDS_WITHIN_S) == 0 else f"it ended with status {server.returncode}"


def is_ready(server: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it was ready in time."""
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end and server.poll() is None:
        if request(port, "GET", "/ping")[0] == 200:
            return True
        time.sleep(0.5)
    return False


def request(port: int, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """Status and JSON of an answer; a POST is sent with the key. Status 0 where nobody listens."""
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"} if body is not None else {}
    connection = HTTPConnection("127.0.0.1", port, timeout=STARTS_WITHIN_S)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.load(response)
    except (OSError, HTTPException):
        return 0, None
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
