"""`ewe serve --replicas 2`: one address, two real servers; nothing is lost if one is killed or hangs, none stays."""

from __future__ import annotations

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from server_rig import ServerProcess, http, openai_client, wait_for

openai = pytest.importorskip("openai", reason="the openai client is not installed")

QUESTIONS = [
    "Who was Nurim Nurner?",
    "Where did Nurim Nurner study?",
    "Who is Fanilde Cavroy?",
    "Who was Doren Clundorn?",
]


def pids(server: ServerProcess) -> list[int]:
    """The processes of both replicas, in their order, the newest of each."""
    found = dict(re.findall(r"replica=(\d) pid=(\d+)", server.output))
    return [int(found[name]) for name in sorted(found)]


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_two_servers_behind_one_address(tmp_path: Path) -> None:
    settings = ["cache.memory_gib=0.2", f"server.batch_folder={tmp_path}"]
    options = [part for setting in settings for part in ("--set", setting)]
    with ServerProcess("--replicas", "2", *options) as server:
        url = server.url
        client = openai_client(url)

        def both_ready() -> bool:
            assert server.process.poll() is None, server.output
            return list(http.get(f"{url}/health").json()["replicas"].values()) == ["ready"] * 2

        def ask(question: str, **more: Any) -> Any:
            messages = [{"role": "user", "content": question}]
            return client.chat.completions.with_raw_response.create(
                model="builtin", messages=messages, max_tokens=12, **more
            )

        wait_for(both_ready, "both are ready")
        assert [model.id for model in client.models.list()] == ["builtin"]
        by = {question: {ask(question).headers["x-ewe-replica"] for _ in range(2)} for question in QUESTIONS}
        assert all(len(names) == 1 for names in by.values())
        assert by[QUESTIONS[0]] == by[QUESTIONS[1]], "both are about the same article"
        whole = ask(QUESTIONS[0]).parse().choices[0].message.content
        chunks = client.chat.completions.create(
            model="builtin", messages=[{"role": "user", "content": QUESTIONS[0]}], max_tokens=12, stream=True
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole
        file = client.files.create(file=("requests.jsonl", b"{}\n"), purpose="batch")
        assert client.files.retrieve(file.id).bytes == 3
        figures = http.get(f"{url}/metrics").text
        assert 'ewe:request_success_total{finished_reason="length",replica="0"}' in figures + str(by)
        assert 'ewe:memory_units{replica="1"}' in figures

        for blow in (signal.SIGKILL, signal.SIGSTOP):
            victim = pids(server)[int(*by[QUESTIONS[0]])]
            with ThreadPoolExecutor(8) as clients:
                asked = [clients.submit(ask, QUESTIONS[number % 4]) for number in range(24)]
                asked[2].result()
                os.kill(victim, blow)
                assert all(answer.result().parse().choices[0].message.content for answer in asked)
            wait_for(lambda gone=victim: gone not in pids(server), "it is started again")  # type: ignore[misc]
            wait_for(both_ready, "both are ready again")
        left = pids(server)
        assert server.stop(signal.SIGTERM) == 0, server.output
        assert not any(is_there(pid) for pid in left)


@pytest.mark.slow
def test_replicas_that_cannot_start_say_why(tmp_path: Path) -> None:
    with ServerProcess("--replicas", "2", "--set", "server.api_key_file=/no/such/file") as server:
        assert server.wait() == 2
        assert "cannot read /no/such/file" in server.output
    with ServerProcess("--replicas", "2", "--set", f"longterm.path={tmp_path}") as server:
        assert server.wait() == 2
        assert "has one writer" in server.output
