"""More than the servers can take: nobody who lives is taken for dead, and what finds no room is told when to come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from router_rig import CHAT, ask, owner_first, routing
from server_rig import http, httpx, serving, wait_for
from stand_in_servers import Actor, Server, running

from ewe.server.router import router_app
from ewe.server.router.replicas import Replica, ReplicaSet
from ewe.server.router.router_app import create_router


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    with running(2) as made:
        yield made


def refuse(status: int, code: str) -> Callable[[Actor], None]:
    return lambda actor: actor.answer(status, {"error": {"code": code}}, retry_after="2")


def told(answer: httpx.Response) -> tuple[int, str, bool]:
    return answer.status_code, answer.json()["error"]["code"], "retry-after" in answer.headers


def test_what_finds_no_room_is_told_when_to_come_and_reaches_nobody(servers: list[Server]) -> None:
    gate = Event()

    def wait(actor: Actor) -> None:
        assert gate.wait(60)
        actor.answer(200, {"by": actor.server.server_port})

    for server in servers:
        server.play, server.capacity = wait, 2
    with routing([server.url for server in servers]) as (url, _), ThreadPoolExecutor(4) as clients:
        inside = [clients.submit(ask, url, str(number)) for number in range(4)]
        wait_for(lambda: len(servers[0].seen + servers[1].seen) == 4, "all places are taken")
        assert [told(ask(url, str(number))) for number in range(6)] == [(429, "queue_full", True)] * 6
        assert (len(servers[0].seen), len(servers[1].seen)) == (2, 2)
        gate.set()
        assert [each.result().status_code for each in inside] == [200] * 4
        assert ask(url).status_code == 200


def test_requests_that_are_no_answers_take_no_room_from_answers(servers: list[Server]) -> None:
    gate = Event()

    def wait(actor: Actor) -> None:
        assert actor.path == CHAT or gate.wait(60)
        actor.answer(200, {"by": actor.server.server_port})

    for server in servers:
        server.play, server.capacity = wait, 1
    with routing([server.url for server in servers]) as (url, replicas), ThreadPoolExecutor(4) as clients:
        wait_for(lambda: all(each.capacity == 1 for each in replicas.replicas), "they have said what they take")
        checks = [clients.submit(http.post, f"{url}/v1/verify", json={"text": "x"}) for _ in range(4)]
        wait_for(lambda: len(servers[0].seen + servers[1].seen) == 4, "all checks are under way")
        assert [ask(url, str(number)).status_code for number in range(3)] == [200] * 3
        gate.set()
        assert [each.result().status_code for each in checks] == [200] * 4


def test_a_server_without_room_is_passed_over_and_if_none_has_any_that_is_told(servers: list[Server]) -> None:
    with routing([server.url for server in servers]) as (url, replicas):
        owner, other = owner_first(servers, url)
        owner.play = refuse(429, "queue_full")
        assert ask(url).json()["by"] == other.server_port
        other.play = refuse(503, "loading")
        assert told(ask(url)) == (429, "queue_full", True), "there is one that lives"
        assert {each.state for each in replicas.replicas} == {"ready"}
        owner.play, other.play = refuse(429, "too_many"), refuse(500, "never asked")
        assert told(ask(url)) == (429, "too_many", True), "which is about the key, not about the server"


def test_a_router_that_has_no_time_still_looks_after_its_servers(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Event()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/ping":
            if begun.is_set():
                looked.set()
            return httpx.Response(200)
        begun.set()
        told = json.dumps({"looked": looked.wait(5)})  # nothing else runs in this event loop meanwhile
        return httpx.Response(200, stream=httpx.ByteStream(told.encode()))

    begun = Event()
    monkeypatch.setattr(router_app, "open_client", lambda: httpx.AsyncClient(transport=httpx.MockTransport(answer)))
    replicas = ReplicaSet([Replica("0", "http://a")])
    with serving(create_router(replicas, 1000)) as url:
        wait_for(lambda: replicas.is_ready, "it is ready")
        assert ask(url).json() == {"looked": True}
