"""A connection whose client does not take its answer: it has the time of a body, and no more by sending."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the server's packages are not installed")

import uvicorn
from uvicorn.server import ServerState

from ewe.server.http.connections import ConnectionWatch
from ewe.server.http.http_connection import HttpConnection
from ewe.server.http.listener import listen
from ewe.server.settings import ServerSettings

ASK = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}


class FullTransport(asyncio.Transport):
    """What is written to it is not taken until it is told to resume."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: Any = None
        self.was_aborted = False

    def write(self, data: Any) -> None:
        self.protocol.pause_writing()

    def is_closing(self) -> bool:
        return self.was_aborted

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        self.was_aborted = True


class Rig:
    """One connection with a watch whose time stands still until it is told."""

    def __init__(self, app: Any) -> None:
        self.now = 0.0
        self.watch = ConnectionWatch(10, lambda: self.now)
        self.transport = FullTransport()
        config = uvicorn.Config(app, log_config=None, access_log=False)
        config.load()
        settings = ServerSettings(body_timeout=30, keep_alive=3)
        self.connection = HttpConnection(self.watch, settings, config=config, server_state=ServerState(), app_state={})
        self.transport.protocol = self.connection
        self.connection.connection_made(self.transport)

    def was_dropped_by(self, now: float) -> bool:
        self.now = now
        self.watch.end_overdue()
        return self.transport.was_aborted


async def whole_answer(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"1234"})


async def half_answer(scope: Any, receive: Any, send: Any) -> None:
    await send(START)
    await send({"type": "http.response.body", "body": b"12", "more_body": True})
    await asyncio.Event().wait()


async def _asked(app: Any) -> Rig:
    rig = Rig(app)
    rig.connection.data_received(ASK)
    await asyncio.sleep(0)
    rig.connection.resume_writing()  # the head is gone
    for _ in range(3):
        await asyncio.sleep(0)
    return rig


def test_an_answer_that_is_being_taken_is_not_cut_as_if_the_connection_were_idle() -> None:
    async def check() -> None:
        rig = await _asked(whole_answer)
        assert rig.connection.cycle.response_complete
        assert not rig.was_dropped_by(20)
        rig.connection.resume_writing()
        assert not rig.was_dropped_by(22)
        assert rig.was_dropped_by(24), "now it is idle"

    asyncio.run(check())


@pytest.mark.parametrize("sent", [ASK, b"G"])
def test_who_takes_nothing_of_an_answer_gains_no_time_by_sending(sent: bytes) -> None:
    async def check() -> None:
        rig = await _asked(half_answer)
        rig.now = 20
        rig.connection.data_received(sent)
        assert not rig.was_dropped_by(29)
        assert rig.was_dropped_by(31)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("head", "is_whole"), [(b"content-length: 200000", True), (b"transfer-encoding: chunked", False)]
)
def test_a_body_without_chunks_is_taken_as_it_comes(head: bytes, is_whole: bool) -> None:
    async def check() -> None:
        rig = Rig(whole_answer)
        rig.connection.data_received(b"POST / HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n\r\n")
        taken: list[int] = []
        receive = rig.connection.conn.receive_data
        rig.connection.conn.receive_data = lambda data: (taken.append(len(data)), receive(data))
        rig.connection.data_received(b"10000\r\n" + b"x" * 50_000)
        assert (len(taken) == 1) == is_whole

    asyncio.run(check())


def posted(length: int) -> bytes:
    return b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % length


async def reads_all(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass


async def trickled(rig: Rig, until: float, every: float, part: bytes) -> float:
    """Sends a part now and then; gives the time at which the connection was dropped, or `until`."""
    while rig.now < until and not rig.was_dropped_by(rig.now + every):
        rig.connection.data_received(part)
        for _ in range(3):
            await asyncio.sleep(0)
    rig.connection.connection_lost(None)
    return rig.now


def test_a_body_that_trickles_ends_with_its_time() -> None:
    """What came at once earns the time that a slow client would have needed for it, and no more."""

    async def check() -> None:
        rig = Rig(reads_all)
        rig.connection.data_received(posted(1 << 22))
        assert 30 <= await trickled(rig, 600, 9, b" ") <= 50
        rig = Rig(reads_all)
        rig.connection.data_received(posted(1 << 22) + b" " * (1 << 21))
        assert 94 <= await trickled(rig, 600, 9, b" ") <= 120

    asyncio.run(check())


def test_a_slow_body_comes_whole_and_each_has_a_time_of_its_own() -> None:
    async def check() -> None:
        rig = Rig(reads_all)
        rig.connection.data_received(posted(1 << 22))
        assert await trickled(rig, 100, 1, b" " * 40_000) == 100
        assert not rig.transport.was_aborted

    asyncio.run(check())


def test_the_time_in_which_nothing_is_read_is_not_the_clients() -> None:
    async def check() -> None:
        ended = asyncio.Event()

        async def never_reads(scope: Any, receive: Any, send: Any) -> None:
            await ended.wait()

        rig = Rig(never_reads)
        rig.connection.data_received(posted(1 << 22) + b" " * 100_000)
        assert rig.connection.flow.read_paused
        for _ in range(10):
            rig.now += 20
            rig.connection.data_received(b" ")
        assert not rig.was_dropped_by(rig.now)
        rig.connection.connection_lost(None)
        ended.set()
        await asyncio.sleep(0)

    asyncio.run(check())


def test_parts_of_a_stream_are_sent_without_waiting_for_the_client() -> None:
    async def delays() -> list[int]:
        settings, sockets = ServerSettings(port=0), list[Any]()

        class Noted(HttpConnection):
            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                sockets.append(transport.get_extra_info("socket"))

        config = uvicorn.Config(whole_answer, log_config=None, access_log=False)
        config.load()
        made = partial(Noted, ConnectionWatch(10), settings, config=config, server_state=ServerState(), app_state={})
        listener = listen(settings)
        server = await asyncio.get_running_loop().create_server(made, sock=listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(ASK)
        await reader.readuntil(b"1234")
        found = [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in sockets]
        writer.close()
        server.close()
        return found

    assert asyncio.run(delays()) == [1]
