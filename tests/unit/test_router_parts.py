"""What the router is made of: keys of requests, shares of the machine, processes that are started again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")

import httpx

from ewe.errors import ConfigError
from ewe.router import processes, replicas
from ewe.router.processes import ReplicaProcess, device_environment
from ewe.router.replicas import ENGINE_DEAD, READY, Replica, ReplicaSet
from ewe.router.routing_key import routing_key
from ewe.router.run import _Router


def chat(text: Any, **body: Any) -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}], **body}


def test_the_same_question_has_the_same_key_wherever_it_is_asked() -> None:
    asked = [
        *(chat("Who was Ada?"), chat(" who was ADA "), chat([{"type": "text", "text": "Who was Ada?"}])),
        *({"input": "Who was Ada?"}, {"prompt": ["Who was Ada?", "x"]}, {"text": "Who was Ada?"}),
        {"messages": [*chat("x")["messages"], *chat("Who was Ada?")["messages"]]},
    ]
    assert {routing_key(body) for body in asked} == {"question who was ada"}
    assert routing_key(chat("Who was Ida?")) != "question who was ada"


def test_what_decides_the_units_comes_before_the_words() -> None:
    passages = {"Who was Ada?": "Ada Lovelace", "When did she die?": ""}
    find = passages.__getitem__
    assert routing_key(chat("Who was Ada?"), find) == "passage Ada Lovelace"
    assert routing_key(chat("When did she die?"), find) == "question when did she die"
    assert routing_key(chat("?", memory={"user": "u"})) == "memory u None"
    assert routing_key(chat("?", memory={"user": "u"}, documents=["a"])).startswith("document ")
    assert routing_key(chat("?", documents=["a"], prompt_cache_key="mine")) == "caller mine"
    assert routing_key({"input": [1, 2]}) == routing_key({}) == routing_key(chat("?")) == ""


def test_requests_that_share_most_documents_mostly_meet() -> None:
    shared = [{"text": f"document {number}"} for number in range(9)]
    key = routing_key({"documents": shared})
    assert routing_key({"documents": shared[::-1]}) == key
    met = [routing_key({"documents": [*shared, f"own {number}"]}) == key for number in range(200)]
    assert 0.8 < sum(met) / 200 < 0.98, "nine in ten"
    assert routing_key({"documents": [{"title": "t", "text": "a"}]}) != routing_key({"documents": ["a"]})


LEAVES = st.sampled_from([None, True, 1.5, "", "x", "\ud800"])
JSON = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=2) | st.dictionaries(st.sampled_from(["role", "content"]), part)
)
NAMES = st.sampled_from(["messages", "documents", "memory", "input", "prompt", "text", "prompt_cache_key"])


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(NAMES, JSON, max_size=3))
def test_any_body_has_a_key(body: dict[str, Any]) -> None:
    assert routing_key(body) == routing_key(body)


def test_each_replica_has_its_share_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_num_gpus", lambda: 4)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    shares = [device_environment(number, 2, 2, {}) for number in range(2)]
    assert shares == [{"CUDA_VISIBLE_DEVICES": "0,1"}, {"CUDA_VISIBLE_DEVICES": "2,3"}]
    assert device_environment(1, 2, 1, {"CUDA_VISIBLE_DEVICES": "5,7"}) == {"CUDA_VISIBLE_DEVICES": "7"}
    with pytest.raises(ConfigError, match=r"4 GPUs.*3 replicas with 2"):
        device_environment(0, 3, 2, {})
    assert device_environment(0, 3, 0, {}) == {"OMP_NUM_THREADS": "2"}, "model.device=cpu"
    assert device_environment(0, 3, 0, {"OMP_NUM_THREADS": "5"}) == {}


def test_a_replica_that_hangs_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "_LOOK_AGAIN_S", 0.0)

    async def ask(request: httpx.Request) -> httpx.Response:
        if request.url.host == "hangs":
            await asyncio.sleep(600)
        fast.asked += 1
        return httpx.Response(200)

    async def look() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(ask)) as client:
            watch = asyncio.create_task(ReplicaSet([Replica("0", "http://hangs"), fast]).watch(client))
            while fast.asked < 3:
                await asyncio.sleep(0)
            watch.cancel()

    fast = Replica("1", "http://fast")
    asyncio.run(asyncio.wait_for(look(), 60))
    assert fast.state == READY


def test_an_upgrade_to_websockets_is_a_request_like_any_other() -> None:
    config = _Router(lambda *_: None, ReplicaSet([]), (), 0.0).config  # type: ignore[arg-type, return-value]
    config.load()
    assert config.ws_protocol_class is None


# Counts its starts, and ends with the next of the statuses; without one it stays.
SCRIPT = """
import sys, time
with open(sys.argv[1], "a+") as file:
    file.write("x"); file.seek(0); start = len(file.read())
statuses = sys.argv[2].split(",")
if start <= len(statuses): sys.exit(int(statuses[start - 1]))
time.sleep(600)
"""


def process_of(replica: Replica, starts: Path, statuses: str) -> ReplicaProcess:
    return ReplicaProcess(replica, [sys.executable, "-I", "-S", "-c", SCRIPT, str(starts), statuses], {})


@pytest.fixture(autouse=True)
def without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_FIRST_DELAY_S", 0.0)
    monkeypatch.setattr(processes, "_LOOK_AGAIN_S", 0.01)


async def started(starts: Path, times: int) -> None:
    while not starts.exists() or len(starts.read_text()) < times:
        await asyncio.sleep(0.01)


def test_a_replica_that_ends_is_started_again_until_it_is_stopped(tmp_path: Path) -> None:
    async def live() -> None:
        replica = Replica("0")
        process = process_of(replica, tmp_path / "starts", "1,0,-9")
        running = asyncio.create_task(process.run())
        await started(tmp_path / "starts", 4)
        before = replica.url
        replica.state = ENGINE_DEAD
        await started(tmp_path / "starts", 5)
        assert replica.url != before, "a new port, since somebody may have taken the old one"
        assert not running.done()
        process.stop()
        await running
        process.stop(kill=True)
        assert replica.state != READY

    asyncio.run(asyncio.wait_for(live(), 300))


def test_settings_that_are_refused_are_not_tried_again_unless_they_were_good_before(tmp_path: Path) -> None:
    async def live() -> None:
        process = process_of(Replica("0"), tmp_path / "later", "2,2")
        process._was_ready = True
        running = asyncio.create_task(process.run())
        await started(tmp_path / "later", 3)
        process.stop()
        await running

    asyncio.run(asyncio.wait_for(live(), 300))
    with pytest.raises(ConfigError, match="replica 0"):
        asyncio.run(process_of(Replica("0"), tmp_path / "starts", "2,2").run())
    assert (tmp_path / "starts").read_text() == "x"
