"""What the router is made of: keys of requests, shares of the machine, processes that are started again."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastapi", reason="the server's packages are not installed")

import httpx

from ewe.errors import ConfigError
from ewe.server.http.listener import LISTEN_FD, listen
from ewe.server.process import end_with_input
from ewe.server.router import processes, replicas
from ewe.server.router.processes import ReplicaProcess, device_environment
from ewe.server.router.replicas import ENGINE_DEAD, READY, Replica, ReplicaSet
from ewe.server.router.router_app import create_router
from ewe.server.router.router_process import _Router
from ewe.server.settings import ServerSettings


def test_each_replica_has_its_share_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_num_gpus", lambda: 4)
    monkeypatch.setattr(processes, "usable_cpus", lambda: 8)
    shares = [device_environment(number, 2, 2, {}) for number in range(2)]
    assert shares == [{"CUDA_VISIBLE_DEVICES": "0,1"}, {"CUDA_VISIBLE_DEVICES": "2,3"}]
    assert device_environment(1, 2, 1, {"CUDA_VISIBLE_DEVICES": "5,7"}) == {"CUDA_VISIBLE_DEVICES": "7"}
    with pytest.raises(ConfigError, match=r"4 GPUs.*3 replicas with 2"):
        device_environment(0, 3, 2, {})
    assert device_environment(0, 3, 0, {}) == {"OMP_NUM_THREADS": "2"}, "model.device=cpu"
    assert device_environment(0, 3, 0, {"OMP_NUM_THREADS": "5"}) == {}
    assert device_environment(0, 2, 1, {"CUDA_VISIBLE_DEVICES": "-1"}) == {"OMP_NUM_THREADS": "4"}


def test_a_replica_that_hangs_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "_LOOK_AGAIN_S", 0.0)

    async def ask(request: httpx.Request) -> httpx.Response:
        if request.url.host == "hangs":
            await asyncio.sleep(600)
        fast.num_requests += 1
        return httpx.Response(200)

    async def look() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(ask)) as client:
            watch = asyncio.create_task(ReplicaSet([Replica("0", "http://hangs"), fast]).watch(client))
            while fast.num_requests < 3:
                await asyncio.sleep(0)
            watch.cancel()

    fast = Replica("1", "http://fast")
    asyncio.run(asyncio.wait_for(look(), 60))
    assert fast.state == READY


def test_an_upgrade_to_websockets_is_a_request_like_any_other() -> None:
    config = _Router(lambda *_: None, ReplicaSet([]), (), ServerSettings()).config  # type: ignore[arg-type, return-value]
    config.load()
    assert config.ws_protocol_class is None


def test_whoever_stops_answering_hangs_and_whoever_starts_may_take_its_time() -> None:
    async def ask(request: httpx.Request) -> httpx.Response:
        if isinstance(said[0], Exception):
            raise said[0]
        return httpx.Response(said[0], json={"error": {"code": "stalled"}})

    async def check(*answers: int | Exception) -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(ask)) as client:
            for said[0] in answers:
                await replica.check(client)

    said: list[int | Exception] = [0]
    replica, slow, gone = Replica("0", "http://a"), httpx.ReadTimeout(""), httpx.ConnectError("")
    for answers, is_hung in [
        ([slow] * 9, False),
        ([200, slow, slow, 200, slow, slow], False),
        ([gone, gone, gone], False),
        ([200, slow, httpx.ConnectTimeout(""), slow], True),
        ([200, 503, 503, 503], True),
    ]:
        asyncio.run(check(*answers))
        assert replica.is_hung == is_hung, answers
    replica.restarted("http://b")
    assert not replica.is_hung


class _Hanging(httpx.AsyncByteStream):
    """Pieces of a body, after which nothing comes; `begun` is set when the rest is asked for."""

    def __init__(self, pieces: Sequence[bytes], begun: asyncio.Event) -> None:
        self._pieces, self._begun = pieces, begun

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        self._begun.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("pieces", [None, [], [b"data: 1\n\n"], [b"data: 1\n\n", b"data: 2\n\n"]])
def test_requests_of_a_replica_that_hangs_are_treated_like_those_of_one_that_was_killed(
    pieces: list[bytes] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/ping":
            raise httpx.ReadTimeout("")
        if request.url.host == "other":
            return httpx.Response(200, stream=httpx.ByteStream(b"other"))
        if pieces is None:
            begun.set()
            await asyncio.Event().wait()
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Hanging(pieces, begun))

    async def run() -> None:
        client = httpx.AsyncClient(transport=httpx.MockTransport(ask))
        monkeypatch.setattr("ewe.server.router.router_app.open_client", lambda: client)
        hung, other = Replica("0", "http://hung", READY), Replica("1", "http://other", READY, load=1)
        app = create_router(ReplicaSet([hung, other]), 1000)
        async with client, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://router") as asker:
            asked = asyncio.create_task(asker.post("/v1/completions", json={}))
            await begun.wait()
            for _ in range(3):
                assert not asked.done()
                await hung.check(client)
            answer = await asked
        if pieces and pieces[1:]:
            first, second, error, end = filter(None, answer.text.split("\n\n"))
            assert (first, second, end) == ("data: 1", "data: 2", "data: [DONE]")
            assert "replica_lost" in error
        else:
            assert answer.text == "other"
        assert (hung.failed, hung.load) == (1, 0)

    begun = asyncio.Event()
    asyncio.run(asyncio.wait_for(run(), 300))


def test_probes_have_a_line_when_their_answer_changes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("ewe.server"), "propagate", True)
    caplog.set_level(logging.INFO, "ewe.server")
    replica = Replica("0")
    app = create_router(ReplicaSet([replica]), 1000)

    async def probe() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://router") as asker:
            for replica.state in ("loading", "loading", READY, READY, READY, "stalled", "stalled", READY):
                await asker.get("/ready")
                await asker.get("/health")

    asyncio.run(probe())
    assert [record.fields["status"] for record in caplog.records] == [503, 200, 503, 200]  # type: ignore[attr-defined]


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
        replica.state = ENGINE_DEAD
        await started(tmp_path / "starts", 5)
        replica.missed = 3
        await started(tmp_path / "starts", 6)
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


def test_a_replica_that_cannot_be_started_for_now_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, failures = socket.create_server, [OSError(errno.EMFILE, "Too many open files")] * 2

    def create_later(*arguments: Any, **options: Any) -> socket.socket:
        if failures:
            raise failures.pop()
        return create(*arguments, **options)

    async def live() -> None:
        process = process_of(Replica("0"), tmp_path / "starts", "1")
        running = asyncio.create_task(process.run())
        await started(tmp_path / "starts", 2)
        assert not failures
        process.stop()
        await running

    monkeypatch.setattr(socket, "create_server", create_later)
    asyncio.run(asyncio.wait_for(live(), 300))


ROUTER = """
import asyncio, sys
from ewe.server.router.processes import ReplicaProcess
from ewe.server.router.replicas import Replica
command = [sys.executable, "-I", "-S", "-c", "import os; print('there', flush=True); os.read(0, 1)"]
asyncio.run(ReplicaProcess(Replica("0"), command, {}).run())
"""


def test_a_replica_ends_with_a_router_that_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", ROUTER], env=environment, stdout=subprocess.PIPE) as router:
        assert router.stdout is not None
        assert router.stdout.readline() == b"there\n"
        router.kill()
        assert router.communicate(timeout=300)[0] == b"", "both have closed their output"


def test_a_server_ends_with_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append((pid, number)))
    read, write = os.pipe()
    ending = threading.Thread(target=end_with_input, args=(read,))
    ending.start()
    assert signals == []
    os.close(write)
    ending.join()
    os.close(read)
    assert signals == [(os.getpid(), signal.SIGTERM)]


GREETER = """
import os, socket
connection, _ = socket.socket(fileno=int(os.environ["EWE_LISTEN_FD"])).accept()
connection.sendall(b"hello")
"""


def test_a_replica_is_started_with_its_socket() -> None:
    async def live() -> None:
        replica = Replica("0")
        process = ReplicaProcess(replica, [sys.executable, "-I", "-S", "-c", GREETER], {})
        running = asyncio.create_task(process.run())
        while not replica.url:
            await asyncio.sleep(0.01)
        url = httpx.URL(replica.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        assert await reader.read() == b"hello", "whoever connects before it listens waits"
        writer.close()
        process.stop()
        await running

    asyncio.run(asyncio.wait_for(live(), 300))


def test_a_server_takes_the_socket_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        handed_over = os.dup(given.fileno())
        os.set_inheritable(handed_over, True)
        monkeypatch.setenv(LISTEN_FD, str(handed_over))
        with listen(ServerSettings()) as taken:
            assert taken.getsockname() == given.getsockname()
            assert not taken.get_inheritable()
    assert LISTEN_FD not in os.environ, "it is for one"
