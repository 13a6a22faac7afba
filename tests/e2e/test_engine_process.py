"""`ewe serve` with the engine in a process of its own: the same answers, and nobody is left when either side dies."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from builtin_rig import CHAT, CONFIG, ENDLESS, server
from server_rig import ServerProcess, events_of, http, wait_for
from typer.testing import CliRunner

from ewe.cli.main import app
from ewe.errors import DatastoreError
from ewe.server.own_process import engine_child
from ewe.server.own_process.engine_process import EngineProcess
from ewe.server.own_process.message_pipe import MessagePipe
from ewe.server.settings import ServerSettings

OWN = ("--set", "server.engine_process=true", "--set", "server.max_tokens=1800")
EVENTS = {**CHAT, "max_tokens": 60, "stream": True, "ewe": {"events": True}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
VARY = ("id", "created", "latency_s", "total_s", "decode_s", "retrieval_wait_s", "verification_wait_s")


def child_of(process: ServerProcess) -> psutil.Process:
    """The engine's process."""
    [child] = psutil.Process(process.process.pid).children()
    return child


def is_gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def steady(value: Any) -> Any:
    """What does not differ from run to run; log-probabilities do in their last digits, with who shares a pass."""
    if isinstance(value, float):
        return round(value, 2)
    if isinstance(value, dict):
        return {key: steady(item) for key, item in value.items() if key not in VARY}
    return [steady(item) for item in value] if isinstance(value, list) else value


def answers(ask: Any) -> dict[str, Any]:
    """What a server answers to one request of each kind; ask: posts a body to a path."""
    stream = [json.loads(data) for data in events_of(ask("/v1/chat/completions", EVENTS).text)[:-1]]
    bodies = {
        "/v1/completions": {"prompt": ["Nurim Nurner", "Tenford"], "n": 2, "max_tokens": 8, "logprobs": 2, "seed": 3},
        "/v1/chat/completions": {**CHAT, "tools": [TOOL], "tool_choice": "none"},
        "/v1/verify": {"text": "Nurim Nurner was born in 1801. It is late.", "prompt": "Who was Nurim Nurner?"},
        "/tokenize": {"prompt": "Nurim Nurner", "return_token_strs": True},
        "/detokenize": {"tokens": [40, 50]},
        "/v1/embeddings": {"input": "Tenford"},
    }
    refused = [
        {**CHAT, "documents": [f"text {number}" for number in range(99)]},
        {**CHAT, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "no"}}}},
        {"messages": [{"role": "user", "content": "word " * 5000}]},
        {**CHAT, "ewe": {"memory": {"user": "ann"}}},
        {**CHAT, "logit_bias": {"999999": 1}},
    ]
    found = {path: ask(path, body) for path, body in bodies.items()}
    text, document = "It rains. " * 20 + "Tenford is a town.", {"id": "a", "text": "Tenford is a town."}
    found["of documents"] = ask("/v1/verify", {"text": text, "documents": [document]})
    told = [ask("/v1/chat/completions", body) for body in refused]
    plain = {path: (answer.status_code, steady(answer.json())) for path, answer in found.items()}
    return {"stream": steady(stream), **plain, "refused": [(one.status_code, steady(one.json())) for one in told]}


@contextmanager
def reading(url: str) -> Any:
    """A stream that has begun and does not end by itself."""
    with http.stream("POST", f"{url}/v1/chat/completions", json={**ENDLESS, "stream": True}) as answer:
        pieces = answer.iter_text()
        text = ""
        while "content" not in text:
            text += next(pieces)
        yield pieces


def figure(url: str, name: str) -> float:
    return float(re.search(rf"^ewe:{name} (\S+)", http.get(f"{url}/metrics").text, re.M)[1])  # type: ignore[index]


@pytest.mark.slow
def test_answers_are_those_of_an_engine_in_the_server_until_its_process_is_killed() -> None:
    with ServerProcess(*OWN) as own, server() as here:
        url = own.wait_until_ready()
        assert answers(lambda path, body: http.post(url + path, json=body)) == answers(
            lambda path, body: here.post(path, json=body)
        )
        with reading(url):
            wait_for(lambda: figure(url, "num_requests_running") == 1, "it is written")
        wait_for(lambda: figure(url, "num_requests_running") == 0, "the answer of a client that hung up is aborted")
        wait_for(lambda: figure(url, "kv_cache_usage_perc") == 0, "its blocks are free")
        child = child_of(own)
        child.send_signal(signal.SIGTERM)
        with reading(url) as pieces:
            child.kill()
            records = events_of("".join(pieces))
        assert json.loads(records[-2])["error"]["code"] == "engine_dead"
        assert "SIGKILL" in json.loads(records[-2])["error"]["message"]
        assert records[-1] == "[DONE]"
        health = http.get(f"{url}/health")
        assert (health.status_code, health.json()["error"]["code"]) == (503, "engine_dead")
        assert http.post(f"{url}/v1/chat/completions", json=CHAT).json()["error"]["code"] == "engine_dead"
        assert own.stop(signal.SIGINT) == 0, own.output
    for line in ("phase loading weights", "memory KV pool", "engine policy ewe; datastore builtin"):
        assert line in own.output


@pytest.mark.slow
def test_the_engine_drains_with_the_server() -> None:
    with ServerProcess(*OWN, "--set", "server.drain=0.1", "--set", "verifier=null") as own:
        url, child = own.wait_until_ready(), child_of(own)
        with reading(url) as pieces:
            own.process.send_signal(signal.SIGTERM)
            records = events_of("".join(pieces))
        assert json.loads(records[-2])["error"]["code"] == "shutting_down"
        assert own.wait() == 0, own.output
        assert is_gone(child)


def test_an_engine_that_loads_ends_with_the_server() -> None:
    with ServerProcess(*OWN) as own:
        assert own.url  # it listens, before the engine is there
        child = child_of(own)
        own.stop(signal.SIGKILL)
        wait_for(lambda: is_gone(child), "the engine's process has ended, too")


CHILD = """
import os, time
from ewe.server.own_process.engine_child import end_with_parent
end_with_parent()
print(os.getpid(), flush=True)
time.sleep(600)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


def test_the_kernel_ends_it_with_the_process_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    wait_for(lambda: is_gone(child), "it has ended, too")


def test_it_ends_when_the_other_process_has_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(engine_child, "_exit", ended.append)
    own, others = socket.socketpair()
    others.close()
    engine_child._read(MessagePipe(own), Future())
    assert ended == [1]
    own.close()


@pytest.mark.slow
def test_an_engine_that_writes_ends_with_the_server() -> None:
    with ServerProcess(*OWN, "--set", "verifier=null") as own:
        url, child = own.wait_until_ready(), child_of(own)
        with reading(url):
            own.stop(signal.SIGKILL)
            wait_for(lambda: is_gone(child), "the engine's process has ended, too")


MISSING = ("datastore=/no/such/passages", "the datastore /no/such/passages does not exist")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "told"), [MISSING, ("cache.memory_gib=1e-9", "the KV pool has no room for one block")]
)
def test_what_keeps_the_engine_from_starting_is_told_as_ever(setting: str, told: str) -> None:
    with ServerProcess(*OWN, "--set", setting) as own:
        assert own.wait() == 2
    assert told in own.output
    assert "Traceback" not in own.output


def test_what_keeps_the_engine_from_starting_comes_back_as_its_own_kind_of_error() -> None:
    setting, told = MISSING
    starting = EngineProcess(CONFIG.override([setting]), ServerSettings())
    with pytest.raises(DatastoreError, match=told), starting as process:
        process.open(lambda step: None)
    assert starting._process.returncode is not None


def test_what_cannot_be_served_across_processes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ewe.server.process.serve", lambda *_: None)  # nothing is served if it is not refused
    done = CliRunner().invoke(app, ["serve", *OWN, "--set", f"longterm.path={tmp_path / 'memories'}"])
    assert done.exit_code == 2
    assert "server.engine_process: longterm.path does not go with it" in done.output
    assert not os.listdir(tmp_path)
