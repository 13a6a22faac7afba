"""Fair queues: tenants take turns, and one who fills its own queue leaves a thread to those who come."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.server.http.error_responses import RefusedError
from ewe.server.traffic.fair_queue import FairQueue

LONG = 400.0


class Gates:
    """Works that note when they begin, and end when the test says so."""

    def __init__(self) -> None:
        self.open: dict[str, threading.Event] = {}
        self.begun: list[str] = []

    def work(self, name: str) -> Any:
        gate = self.open.setdefault(name, threading.Event())

        def wait() -> str:
            self.begun.append(name)
            assert gate.wait(LONG)
            return name

        return wait

    def open_all(self) -> None:
        for gate in self.open.values():
            gate.set()


@pytest.fixture
def gates() -> Iterator[Gates]:
    made = Gates()
    yield made
    made.open_all()


async def until(condition: Any) -> None:
    async with asyncio.timeout(LONG):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_flood_of_one_tenant_leaves_a_thread_to_the_next(gates: Gates) -> None:
    async def run() -> None:
        queue = FairQueue("checks", threads=4, most_waiting=10)
        flood = [queue.submit("a", gates.work(f"a{number}")) for number in range(8)]
        await until(lambda: len(gates.begun) == 2)
        gates.work("b")
        gates.open["b"].set()
        assert await queue.submit("b", gates.work("b")) == "b", "while the flood stands still"
        assert not any(answer.done() for answer in flood)
        assert queue.waiting == {"a": 6}
        assert sorted(gates.begun) == ["a0", "a1", "b"], "two of four threads are as many as one tenant gets"
        gates.open_all()
        assert await asyncio.gather(*flood) == [f"a{number}" for number in range(8)]
        assert queue.waiting == {}
        queue.close()

    asyncio.run(run())


def test_tenants_take_turns(gates: Gates) -> None:
    async def run() -> None:
        queue = FairQueue("checks", threads=1, most_waiting=10)
        order = ["a0", "a1", "a2", "b0", "b1", "c0"]
        answers = [queue.submit(name[0], gates.work(name)) for name in order]
        gates.open_all()
        await asyncio.gather(*answers)
        assert gates.begun == ["a0", "a1", "b0", "c0", "a2", "b1"]
        queue.close()

    asyncio.run(run())


def test_a_full_queue_refuses_its_tenant_alone_and_the_gone_leave_it(gates: Gates) -> None:
    async def run() -> None:
        queue = FairQueue("verification", threads=2, most_waiting=2)
        waiting = [queue.submit("a", gates.work(f"a{number}")) for number in range(3)]
        with pytest.raises(RefusedError, match=r"2 requests .* wait for verification") as caught:
            queue.submit("a", gates.work("a3"))
        assert (caught.value.status, caught.value.headers) == (429, {"retry-after": "2"})
        other = queue.submit("b", gates.work("b0"))
        waiting[2].cancel()
        await asyncio.sleep(0)
        last = queue.submit("a", gates.work("a4"))
        gates.open_all()
        assert await asyncio.gather(waiting[0], waiting[1], last, other) == ["a0", "a1", "a4", "b0"]
        assert "a2" not in gates.begun
        queue.close()

    asyncio.run(run())


def test_failures_reach_who_waits_and_those_who_have_gone_keep_their_thread_until_it_ends(gates: Gates) -> None:
    def fail() -> None:
        raise ValueError("broken")

    async def run() -> None:
        queue = FairQueue("checks", threads=1, most_waiting=2)
        with pytest.raises(ValueError, match="broken"):
            await queue.submit("a", fail)
        gone = queue.submit("a", gates.work("gone"))
        await until(lambda: gates.begun == ["gone"])
        gone.cancel()
        after = queue.submit("b", gates.work("after"))
        await asyncio.sleep(0.01)
        assert gates.begun == ["gone"]
        gates.open_all()
        assert await after == "after"
        queue.close()

    asyncio.run(run())
