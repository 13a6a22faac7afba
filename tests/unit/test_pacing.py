"""Pacing: while others are there, a tenant's other work is done one after the other and takes a tenth of the time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.errors import JudgeError
from ewe.server.http.error_responses import RefusedError
from ewe.server.traffic.pacing import Pacing, Turn, end_turn, turn_of
from ewe.server.verify_text import _InParts
from ewe.types import VerificationRequest, VerificationResult

VERIFY, CHAT = "/v1/verify", "/v1/chat/completions"


class Rig:
    """A pacing whose time passes only where work takes it, or somebody sleeps."""

    def __init__(self, most_waiting: int = 32) -> None:
        self.now = 0.0
        self.pacing = Pacing(most_waiting, lambda: self.now, self.sleep, self.rest)
        self.running, self.most_running = 0, 0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def rest(self, seconds: float) -> None:
        self.now += seconds

    async def work(self, tenant: str, took: float = 0.0, path: str = VERIFY, length: str = "100") -> None:
        """A request that takes so long, and lets others go on meanwhile; one for an answer is refused."""
        async with self.pacing.around(request(tenant, path), length):
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            await asyncio.sleep(0)
            self.now += took
            self.running -= 1


def request(tenant: str, path: str = VERIFY, method: str = "POST") -> dict[str, Any]:
    return {"method": method, "path": path, "state": {"key": tenant}}


def run(check: Callable[[Rig], Awaitable[None]], rig: Rig | None = None) -> None:
    async def with_other() -> None:
        made = rig or Rig()
        async with made.pacing.around(request("other", CHAT), "100"):
            await check(made)

    asyncio.run(with_other())


def test_whoever_is_alone_waits_for_nothing() -> None:
    async def check() -> None:
        rig = Rig()
        await asyncio.gather(*(rig.work("one", took=1.0) for _ in range(4)))
        assert (rig.most_running, rig.now) == (4, 4.0)

    asyncio.run(check())


def test_work_beside_the_work_of_others_waits_for_nothing() -> None:
    """Where nobody has an answer written there is nothing that checks could hold up."""

    async def check() -> None:
        rig = Rig()
        await asyncio.gather(*(rig.work(tenant, took=1.0) for tenant in ("one", "two", "one", "two")))
        assert (rig.most_running, rig.now) == (4, 4.0)

    asyncio.run(check())


def test_beside_others_work_is_done_one_after_the_other_a_tenth_of_the_time() -> None:
    async def check(rig: Rig) -> None:
        await asyncio.gather(*(rig.work("one", took=0.05) for _ in range(100)))
        assert rig.most_running == 1
        # 5 s of work, of which a quarter is free; it may end with its last turn.
        assert 40 < rig.now < 50

    run(check, Rig(most_waiting=100))


def test_another_tenant_is_there_for_a_while_after_its_last_request() -> None:
    async def check() -> None:
        rig = Rig()
        await rig.work("other", path=CHAT)
        rig.now += 0.9
        await asyncio.gather(*(rig.work("one") for _ in range(2)))
        assert rig.most_running == 1
        rig.now += 1.1
        await asyncio.gather(*(rig.work("one") for _ in range(2)))
        assert rig.most_running == 2

    asyncio.run(check())


def test_however_long_work_takes_the_next_waits_for_a_second_at_most() -> None:
    async def check(rig: Rig) -> None:
        await rig.work("one", took=100.0)
        await rig.work("one")
        assert rig.now == pytest.approx(101.0)

    run(check)


def test_an_answer_to_a_small_body_and_what_only_reads_wait_for_nothing() -> None:
    async def check(rig: Rig) -> None:
        async with rig.pacing.around(request("one"), "100"):
            async with rig.pacing.around(answered := request("one", CHAT), "60000"):
                end_turn(answered)
            async with rig.pacing.around(request("one", "/v1/models", "GET"), ""):
                pass
            large = asyncio.ensure_future(rig.work("one", path=CHAT, length="70000"))
            unknown = asyncio.ensure_future(rig.work("one", path=CHAT, length=""))
            await asyncio.sleep(0)
            assert not large.done()
            assert not unknown.done()
        await asyncio.gather(large, unknown)

    run(check)


def test_the_turn_of_an_answer_ends_when_the_engine_has_it() -> None:
    async def check(rig: Rig) -> None:
        scope = request("one", CHAT)
        async with rig.pacing.around(scope, "70000"):
            end_turn(scope)
            await rig.work("one")
            end_turn(scope)

    run(check)


def test_who_is_refused_takes_turns_until_it_is_answered() -> None:
    async def check(rig: Rig) -> None:
        await asyncio.gather(*(rig.work("one", path=CHAT) for _ in range(2)))
        assert rig.most_running == 2
        rig.most_running = 0
        await asyncio.gather(*(rig.work("one", path=CHAT) for _ in range(2)))
        assert rig.most_running == 1
        async with rig.pacing.around(answered := request("one", CHAT), "100"):
            end_turn(answered)
        await asyncio.gather(*(rig.work("one", path=CHAT) for _ in range(2)))
        assert rig.most_running == 2

    run(check)


def test_bytes_of_a_body_count_also_where_it_was_refused_before_it_was_read() -> None:
    async def check(rig: Rig) -> None:
        for _ in range(100):
            await rig.work("one", path=CHAT, length="4000000")
        assert 35 < rig.now < 41

    run(check)


def test_more_waiting_requests_than_are_set_are_refused() -> None:
    async def check(rig: Rig) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(rig.pacing.around(request("one"), "1"))
            waiting = [asyncio.ensure_future(rig.work("one")) for _ in range(2)]
            await asyncio.sleep(0)
            with pytest.raises(RefusedError, match=r"server\.max_queued_per_key") as caught:
                await rig.work("one")
            assert (caught.value.status, caught.value.code) == (429, "too_many")
            await rig.work("two")  # has a line of its own
        await asyncio.gather(*waiting)

    run(check, Rig(most_waiting=2))


def test_who_stops_waiting_leaves_the_line_to_the_next() -> None:
    async def check(rig: Rig) -> None:
        async with rig.pacing.around(request("one"), "1"):
            gone, next_one = (asyncio.ensure_future(rig.work("one")) for _ in range(2))
            await asyncio.sleep(0)
            gone.cancel()
        await next_one

    run(check)


def test_tenants_that_have_gone_are_forgotten() -> None:
    async def check() -> None:
        rig = Rig()
        for number in range(100):
            await rig.work(str(number), took=1.0)
        assert len(rig.pacing._tenants) < 10

    asyncio.run(check())


def in_parts(rig: Rig, turn: Turn, count: int, took: float) -> None:
    for _ in range(count):
        with turn.part():
            rig.now += took


def test_work_in_parts_rests_between_them_while_others_have_answers() -> None:
    async def check(rig: Rig) -> None:
        async with rig.pacing.around(asked := request("one"), "100"):
            in_parts(rig, turn_of(asked), 50, took=0.1)
        assert 40 < rig.now < 50  # 5 s of work, of which a quarter is free
        begin = rig.now
        await rig.work("one")
        assert rig.now - begin == pytest.approx(0.9, abs=0.01)  # for the last part, which does not count once more

    run(check)


def test_parts_of_a_tenant_alone_and_what_only_others_wait_for_rest_never() -> None:
    async def check() -> None:
        rig = Rig()
        async with rig.pacing.around(asked := request("one"), "100"):
            in_parts(rig, turn_of(asked), 50, took=0.1)
        assert rig.now == pytest.approx(5.0)

    asyncio.run(check())


def test_each_thing_of_many_is_a_part_with_what_makes_it_and_what_is_done_with_it() -> None:
    async def check(rig: Rig) -> None:
        def making() -> Iterator[int]:
            for number in range(10):
                rig.now += 0.1
                yield number

        async with rig.pacing.around(asked := request("one"), "100"):
            begins = []
            for _ in turn_of(asked).in_parts(making()):
                begins.append(rig.now - 0.1)
                rig.now += 0.1
        rests = [after - before - 0.2 for before, after in pairwise(begins)]
        assert rests == pytest.approx([0.0, *[1.0] * 8], abs=0.2)

    run(check)


def test_a_part_that_fails_is_over_while_its_failure_is_told() -> None:
    """Even if the error is kept: who waits for the next part would wait for it."""

    class Failing:
        def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
            raise JudgeError("it fails")

        def close(self) -> None: ...

    async def check(rig: Rig) -> None:
        async with rig.pacing.around(asked := request("one"), "100"):
            turn = turn_of(asked)
            with pytest.raises(JudgeError) as kept:
                _InParts(Failing(), turn).verify([VerificationRequest("", "", "It rains.")])
            assert not turn._tenant.parts.locked(), kept.value

    run(check)


def test_parts_are_of_one_thing_only_while_others_have_answers() -> None:
    async def check(rig: Rig) -> None:
        async with rig.pacing.around(asked := request("one"), "100"):
            assert turn_of(asked).size_of_parts(8) == 1
        rig.now += 20
        async with rig.pacing.around(asked := request("other"), "100"):
            assert turn_of(asked).size_of_parts(8) == 8

    run(check)


def test_what_follows_an_answer_has_parts_that_rest_too() -> None:
    async def check(rig: Rig) -> None:
        async with rig.pacing.around(asked := request("one", CHAT), "100"):
            end_turn(asked)
            in_parts(rig, turn_of(asked), 20, took=0.1)
        assert rig.now > 15

    run(check)


def test_parts_of_one_tenant_are_done_one_after_the_other() -> None:
    async def check() -> None:
        pacing, inside, most = Pacing(32, rest=lambda seconds: None), 0, 0
        entered = threading.Event()

        def work(turn: Turn) -> None:
            nonlocal inside, most
            with turn.part():
                inside += 1
                most = max(most, inside)
                entered.wait(0.05)  # a second one would come in meanwhile
                inside -= 1

        async with pacing.around(request("other", CHAT), "100"), pacing.around(asked := request("one", CHAT), "100"):
            await asyncio.gather(*(asyncio.to_thread(work, turn_of(asked)) for _ in range(4)))
        assert most == 1

    asyncio.run(check())
