"""`ewe serve` as a process: what it prints, when it is ready, how it drains, what is left of it after kill -9."""

from __future__ import annotations

import json
import re
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from server_rig import LONG, PROMPT, ServerProcess, events_of, http, httpx, wait_for

CHAT = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 60}


def ask_in_background(url: str, body: dict[str, Any]) -> tuple[threading.Thread, list[Any]]:
    """Sends a request; its answer comes into the list. Returns when the server has taken it in."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(http.post(f"{url}/v1/chat/completions", json=body)))
    thread.start()
    running = "num_requests_running 1.0"
    wait_for(lambda: running in http.get(f"{url}/metrics").text or answers, "it has begun", 0.05)
    return thread, answers


def check_that_it_drains(server: ServerProcess, url: str) -> None:
    """A server that is stopping says so and takes nothing new; one that has already stopped has nothing to say."""
    try:
        ready = http.get(f"{url}/ready")
        refused = http.post(f"{url}/v1/chat/completions", json=CHAT)
        alive = http.get(f"{url}/health")
    except httpx.TransportError:
        assert server.wait() == 0, server.output
        return
    assert (ready.status_code, ready.json()["error"]["code"]) == (503, "shutting_down")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert alive.status_code == 200


def test_start_up_report_drain_and_a_second_start(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "server: {max_waiting: 5, max_n: 3}\ndatastore: builtin\nverifier: builtin\nretrieval: {retriever: bm25}\n"
    )
    environment = {
        "EWE_ENGINE_SERVER__MAX_N": "4",
        "EWE_ENGINE_SERVER__DRAIN": "60",
        "EWE_ENGINE_PORT": "tcp://1.2.3.4",
    }
    with ServerProcess("--config", str(settings), "--set", "server.max_tokens=3000", **environment) as server:
        url = server.wait_until_ready()
        server.process.send_signal(signal.SIGUSR1)
        wait_for(lambda: "in _run_once" in server.output, "it says where its threads are")
        for line in (
            *("setting server.max_waiting = 5", "setting server.max_n = 4", "setting server.max_tokens = 3000"),
            *("setting verifier = builtin", "route POST /v1/chat/completions", "memory weights", "memory KV pool"),
            *("loaded in", "EWE_ENGINE_PORT is no setting"),
        ):  # fmt: skip
            assert line in server.output
        steps = (
            *(
                "phase reading settings\nmodel builtin, datastore builtin, verifier builtin",
                "phase importing the server",
            ),
            *("listens on", "phase opening the datastore", "phase importing torch", "phase loading weights"),
            *("phase allocating the KV pool", "phase warming the retriever", "phase warming the verifier", "loaded in"),
        )
        places = [server.output.index(step) for step in steps]
        assert places == sorted(places)
        assert places[0] == 0
        body = {**CHAT, "max_tokens": 100, "ignore_eos": True, "stream": True}
        thread, answers = ask_in_background(url, body)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "draining" in server.output, "it drains")
        check_that_it_drains(server, url)
        assert server.wait() == 0, server.output
        thread.join(LONG)
        records = events_of(answers[0].text)
        assert records[-1] == "[DONE]"
        assert json.loads(records[-2])["choices"][0]["finish_reason"] == "length"
        assert PROMPT not in server.output, "a body is in the log"


@pytest.mark.slow
def test_answers_that_do_not_end_in_time_are_broken_off_and_a_killed_server_starts_again() -> None:
    with ServerProcess("--set", "server.drain=0.2") as server:
        url = server.wait_until_ready()
        body = {**CHAT, "max_tokens": 1500, "ignore_eos": True, "stream": True}
        thread, answers = ask_in_background(url, body)
        assert server.stop(signal.SIGTERM) == 0, server.output
        thread.join(LONG)
        records = events_of(answers[0].text)
        assert json.loads(records[-2])["error"]["code"] == "shutting_down"
        assert records[-1] == "[DONE]"
        assert "answers broken off" in server.output
    with ServerProcess() as server:
        url = server.wait_until_ready()
        server.stop(signal.SIGKILL)
        port = url.rpartition(":")[2]
    with ServerProcess("--port", port) as server:
        url = server.wait_until_ready()
        assert url.endswith(port)
        assert http.post(f"{url}/v1/chat/completions", json=CHAT).status_code == 200


STREAMS = 40


def ask_many(url: str, tokens: int) -> tuple[list[threading.Thread], list[Any]]:
    """Sends many streams at once; what each has read comes into the list. Returns when all are under way."""
    read: list[Any] = []

    def ask(seed: int) -> None:
        body = {**CHAT, "max_tokens": tokens, "ignore_eos": True, "stream": True, "temperature": 0.8, "seed": seed}
        text = ""
        try:
            with http.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
                for piece in answer.iter_text():
                    text += piece
        except httpx.TransportError:
            text += "cut"
        read.append(text)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(STREAMS)]
    for thread in threads:
        thread.start()
    wait_for(lambda: _under_way(url) == STREAMS or read, "all are under way", 0.05)
    return threads, read


def _under_way(url: str) -> float:
    figures = http.get(f"{url}/metrics").text
    return sum(float(number) for number in re.findall(r"^ewe:num_requests_(?:running|waiting) (\S+)", figures, re.M))


@pytest.mark.slow
@pytest.mark.parametrize(("drain_s", "tokens"), [(300, 40), (0.2, 1500)])
def test_sigterm_under_load(drain_s: float, tokens: int) -> None:
    with ServerProcess("--set", f"server.drain={drain_s}", "--set", "verifier=null") as server:
        url = server.wait_until_ready()
        threads, read = ask_many(url, tokens)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "draining" in server.output, "it drains")
        check_that_it_drains(server, url)
        assert server.wait() == 0, server.output
        for thread in threads:
            thread.join(LONG)
    assert len(read) == STREAMS
    ends = [json.loads(events_of(text)[-2]) for text in read]
    assert {events_of(text)[-1] for text in read} == {"[DONE]"}, "every stream has its end"
    finished = [end for end in ends if "error" not in end]
    assert {end["choices"][0]["finish_reason"] for end in finished} <= {"length"}
    assert {end["error"]["code"] for end in ends if "error" in end} <= {"shutting_down"}
    if drain_s > 1:
        assert len(finished) == STREAMS, "there was time enough"
        assert "answers broken off" not in server.output
    else:
        assert len(finished) < STREAMS


@pytest.mark.slow
def test_kill_9_under_load_and_a_start_on_the_same_port() -> None:
    with ServerProcess() as server:
        url = server.wait_until_ready()
        threads, read = ask_many(url, 1500)
        server.stop(signal.SIGKILL)
        for thread in threads:
            thread.join(LONG)
        assert len(read) == STREAMS
        assert all(text.endswith("cut") and "[DONE]" not in text for text in read), "nobody takes it for an end"
    with ServerProcess("--port", url.rpartition(":")[2]) as server:
        assert server.wait_until_ready() == url
        assert http.post(f"{url}/v1/chat/completions", json=CHAT).status_code == 200


@pytest.mark.slow
def test_what_cannot_be_started_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with ServerProcess("--port", port) as server:
            assert server.wait() == 2
            assert f"cannot listen on 127.0.0.1, port {port}" in server.output
    with ServerProcess("/no/such/model") as server:
        assert server.wait() == 2
        assert "no such directory" in server.output
