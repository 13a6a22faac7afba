"""A server whose engine is dead: others answer in its place, and it is asked nothing until it is well again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from builtin_rig import CONFIG, loaded_model
from router_rig import ask, owner_first, routing
from server_rig import http, httpx, serving, wait_for
from stand_in_servers import Actor, Server, running

from ewe import LLM
from ewe.server.app import create_app
from ewe.server.router import replicas as replicas_module
from ewe.server.router.replicas import ReplicaSet

OPENING, NEWS, DONE = 'data: {"delta": ""}\n\n', 'data: {"delta": "Hello"}\n\n', "data: [DONE]\n\n"
ERROR = {"error": {"message": "the engine is not running", "code": "engine_dead"}}
DEATH = f": engine_dead\n\ndata: {json.dumps(ERROR)}\n\n"


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    with running(2) as made:
        yield made


@pytest.fixture
def router(servers: list[Server], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ReplicaSet]]:
    """Looks at its servers once and not again."""
    monkeypatch.setattr(replicas_module, "_LOOK_AGAIN_S", 3600.0)
    with routing([server.url for server in servers]) as made:
        yield made


def die(status: int) -> Any:
    return lambda actor: actor.answer(status, ERROR, x_should_retry="false")


def die_in_a_stream(*pieces: str) -> Any:
    def play(actor: Actor) -> None:
        actor.begin_stream(*pieces)
        actor.end_stream()

    return play


def whole_stream(actor: Actor) -> None:
    actor.begin_stream(OPENING, NEWS)
    actor.end_stream(DONE)


@pytest.mark.parametrize("status", [500, 503])
def test_a_dead_engine_is_replaced_and_asked_nothing_until_it_is_well(
    servers: list[Server], router: tuple[str, ReplicaSet], status: int
) -> None:
    url, replicas = router
    owner, other = owner_first(servers, url)
    owner.play = die(status)
    for _ in range(3):
        answer = ask(url)
        assert (answer.status_code, answer.json()) == (200, {"by": other.server_port})
    assert len(owner.seen) == 1
    dead = next(each for each in replicas.replicas if each.url == owner.url)
    assert (dead.state, dead.failed) == ("engine_dead", 1)
    owner.play = lambda actor: actor.answer(200, {"by": owner.server_port})

    async def look() -> None:
        async with httpx.AsyncClient() as client:
            await dead.check(client)

    asyncio.run(look())
    assert ask(url).json() == {"by": owner.server_port}


@pytest.mark.parametrize(
    "pieces", [(OPENING, DEATH + DONE), (OPENING, DEATH[:30], DEATH[30:], DONE), (OPENING + DEATH, DONE)]
)
def test_a_stream_that_dies_before_its_first_news_is_begun_elsewhere(
    servers: list[Server], router: tuple[str, ReplicaSet], pieces: tuple[str, ...]
) -> None:
    url, replicas = router
    owner, other = owner_first(servers, url)
    owner.play, other.play = die_in_a_stream(*pieces), whole_stream
    for _ in range(2):
        assert ask(url, stream=True).text == OPENING + NEWS + DONE
    assert len(owner.seen) == 1
    assert sorted(each.state for each in replicas.replicas) == ["engine_dead", "ready"]


def test_a_stream_that_dies_after_its_news_is_passed_on_as_it_is(
    servers: list[Server], router: tuple[str, ReplicaSet]
) -> None:
    url, _ = router
    owner, other = owner_first(servers, url)
    owner.play = die_in_a_stream(OPENING, NEWS, DEATH + DONE)
    assert ask(url, stream=True).text == OPENING + NEWS + DEATH + DONE
    assert not other.seen


def test_what_may_have_been_done_is_not_asked_twice_and_what_was_refused_is(
    servers: list[Server], router: tuple[str, ReplicaSet]
) -> None:
    url, replicas = router
    for server in servers:
        server.play = die(500)
    answer = http.post(f"{url}/v1/memories", json={"text": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "engine_dead")
    assert len(servers[0].seen + servers[1].seen) == 1
    for replica in replicas.replicas:
        replica.state = "ready"
    for server in servers:
        server.seen.clear()
        server.play = die(503)
    http.post(f"{url}/v1/memories", json={"text": "x"})
    assert (len(servers[0].seen), len(servers[1].seen)) == (1, 1)


def test_if_all_are_dead_the_client_may_come_again(servers: list[Server], router: tuple[str, ReplicaSet]) -> None:
    url, replicas = router
    for server in servers:
        server.play = die(503)
    answer = ask(url)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_replica")
    assert answer.headers["retry-after"]
    assert {each.state for each in replicas.replicas} == {"engine_dead"}


def test_an_engine_that_dies_says_so_wherever_it_is_asked(router: tuple[str, ReplicaSet]) -> None:
    """With two real servers: the one that dies under a request loses it to the other."""
    llms = [LLM(config=CONFIG.override(["verifier=null"]), loaded=loaded_model()) for _ in range(2)]
    apps = [create_app(llm) for llm in llms]
    with serving(apps[0]) as first, serving(apps[1]) as second, routing([first, second]) as (url, replicas):
        body = {"max_tokens": 4, "stream": False}
        owner = int(ask(url, **body).headers["x-ewe-replica"])
        dead, address = llms[owner], (first, second)[owner]
        dead.client.engine.core.step = _break  # type: ignore[method-assign]
        for stream in (False, True):
            answer = ask(url, **{**body, "stream": stream})
            assert (answer.status_code, answer.headers["x-ewe-replica"]) == (200, str(1 - owner)), answer.text
            assert "engine_dead" not in answer.text
        wait_for(lambda: not dead.client.is_alive, "the engine is dead")
        assert replicas.replicas[owner].state == "engine_dead"
        for path in ("/health", "/ready", "/ping"):
            told = http.get(f"{address}{path}")
            assert (told.status_code, told.json()["error"]["code"]) == (503, "engine_dead")
        refused = ask(address, **body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "engine_dead"), "not taken up"
        assert http.get(f"{address}/metrics").status_code == 200
    for llm in llms:
        llm.close()


def _break() -> bool:
    raise RuntimeError("the GPU has fallen off the bus")
