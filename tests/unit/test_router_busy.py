"""Which replicas are taken for busy and which for dead, and who is asked then."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable

import pytest

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")

import httpx

from ewe.server.router import replicas as replicas_module
from ewe.server.router.replicas import READY, UNREACHABLE, Replica, ReplicaSet
from ewe.server.router.router_app import create_router

Answer = Callable[[httpx.Request], httpx.Response]


def exhausted() -> httpx.ConnectError:
    """What connecting ends with where this process has no more descriptors."""
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    return error


def check(replica: Replica, *answers: httpx.Response | Exception, heard: bool = False) -> None:
    """Looks at it once for each answer; heard: whether other answers come from it meanwhile."""

    def answer(request: httpx.Request) -> httpx.Response:
        replica.num_received += heard
        if isinstance(said[0], Exception):
            raise said[0]
        return said[0]

    async def look() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            for said[0] in answers:
                await replica.check(client)

    said: list[httpx.Response | Exception] = [httpx.Response(200)]
    asyncio.run(look())


def ask(replicas: list[Replica], answer: Answer, monkeypatch: pytest.MonkeyPatch) -> httpx.Response:
    async def run() -> httpx.Response:
        client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        monkeypatch.setattr("ewe.server.router.router_app.open_client", lambda: client)
        app = create_router(ReplicaSet(replicas), 1000)
        async with client, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://router") as asker:
            return await asker.post("/v1/completions", json={})

    return asyncio.run(run())


def test_whoever_answers_others_is_busy_however_long_its_health_takes() -> None:
    replica, slow = Replica("0", "http://a", READY), httpx.ReadTimeout("")
    check(replica, *[slow] * 9, heard=True)
    assert (replica.state, replica.missed) == (READY, 0)
    check(replica, slow, slow)
    assert (replica.state, replica.missed) == (READY, 2), "it may be asked still"
    check(replica, slow)
    assert replica.state == UNREACHABLE
    assert replica.is_hung


def test_a_router_without_descriptors_does_not_take_its_servers_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = Replica("0", "http://a", READY)
    check(replica, *[exhausted()] * 9)
    assert (replica.state, replica.missed) == (READY, 0)

    def answer(request: httpx.Request) -> httpx.Response:
        raise exhausted()

    refused = ask([replica], answer, monkeypatch)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
    assert refused.headers["retry-after"]
    assert replica.state == READY


def test_whoever_is_too_busy_to_take_connections_is_passed_over_and_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        if request.url.host in slow:
            raise httpx.ConnectTimeout("")
        return httpx.Response(200, stream=httpx.ByteStream(json.dumps({"by": request.url.host}).encode()))

    asked: list[str] = []
    replicas = [Replica(name, f"http://{name}", READY) for name in "abc"]
    slow = {"a", "b"}
    assert ask(replicas, answer, monkeypatch).json() == {"by": "c"}
    slow = {"a", "b", "c"}
    refused = ask(replicas, answer, monkeypatch)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
    assert asked == ["a", "b", "c"] * 2
    assert {each.state for each in replicas} == {READY}


def test_whoever_is_silent_is_asked_only_where_nobody_else_has_room() -> None:
    silent, other = Replica("0", "http://a", READY, missed=1), Replica("1", "http://b", READY, answers=3, capacity=4)
    both = ReplicaSet([silent, other])
    assert {both.choose(key) for key in "abcdefgh"} == {other}
    assert both.choose("") is other
    other.answers = 4
    assert both.choose("a") is silent
    silent.answers = silent.capacity
    assert both.choose("a") is both.choose("") is None
    assert both.choose("", asks_model=False) is other, "it has queues of its own for all but answers"


@pytest.mark.parametrize(
    ("told", "capacity"),
    [({"capacity": 7}, 7), ({"capacity": 0}, None), ({"capacity": True}, None), ([], None), ("x", None)],
)
def test_a_replica_says_how_much_it_takes(told: object, capacity: int | None) -> None:
    replica = Replica("0", "http://a")
    before = replica.capacity
    check(replica, httpx.Response(200, json=told))
    assert (replica.state, replica.capacity) == (READY, capacity or before)


@pytest.mark.parametrize("code", ["ready", "x" * 1000, "Two words", 7, None, ["a"]])
def test_a_code_that_is_none_makes_no_state(code: object) -> None:
    replica = Replica("0", "http://a", READY)
    check(replica, httpx.Response(503, json={"error": {"code": code}}))
    assert replica.state == UNREACHABLE


def test_a_health_that_drips_is_slow_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dripping(httpx.AsyncByteStream):
        async def __aiter__(self):  # type: ignore[no-untyped-def]
            while True:
                yield b" "
                await asyncio.sleep(0)

    monkeypatch.setattr(replicas_module, "_PATIENCE_S", 0.01)
    replica = Replica("0", "http://a", READY)
    check(replica, httpx.Response(200, stream=Dripping()))
    assert replica.missed == 1
