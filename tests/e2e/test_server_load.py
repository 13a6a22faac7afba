"""Many streams at once: each is that of a single run, and clients that go take nothing with them."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from builtin_rig import CHAT, server
from server_rig import http, wait_until_idle

from ewe.server.settings import ServerSettings


def test_many_streams_at_once_are_those_of_single_runs_and_half_of_the_clients_may_go() -> None:
    many(16, 10)


@pytest.mark.slow
def test_hundreds_of_streams_at_once() -> None:
    many(500, 40)


def many(count: int, tokens: int) -> None:
    bodies = [
        {**CHAT, "max_tokens": tokens, "temperature": 0.8, "seed": seed % 4, "stream": True} for seed in range(count)
    ]
    rng = random.Random(1)
    goes = [rng.random() * 3 if rng.random() < 0.5 else None for _ in bodies]
    with server(ServerSettings(max_waiting=600), assignments=["verifier=null"]) as client:
        alone = [_text(client, body, None) for body in bodies[:4]]
        with ThreadPoolExecutor(count) as pool:
            together = list(pool.map(lambda body: _text(client, body, None), bodies))
            assert together == [alone[seed % 4] for seed in range(count)]
            list(pool.map(lambda body, after: _text(client, body, after), bodies, goes))
        wait_until_idle(client.llm)


def _text(client: Any, body: Any, go_after: float | None) -> str:
    """The text of a stream; go_after: seconds after which the client hangs up at its next record."""
    text, begin = "", time.monotonic()
    with http.stream("POST", client.base_url.join("/v1/chat/completions"), json=body) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if go_after is not None and time.monotonic() - begin > go_after:
                break
            if line.startswith("data: {"):
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    text += choice["delta"].get("content", "")
    return text
