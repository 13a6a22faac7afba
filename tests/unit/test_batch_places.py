"""Places that keys share: who has few is next, and none is lost."""

from __future__ import annotations

import asyncio
import random

from ewe.server.batch.places import Places, SharedPlaces


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def takes(places: Places, name: str, order: list[str]) -> None:
    await places.acquire()
    order.append(name)


def test_a_key_with_many_batches_leaves_half_to_another() -> None:
    async def run() -> list[str]:
        shared, order = SharedPlaces(4), list[str]()
        waiting = [asyncio.create_task(takes(shared.of("ann"), "ann", order)) for _ in range(20)]
        await settle()
        waiting += [asyncio.create_task(takes(shared.of("bob"), "bob", order)) for _ in range(3)]
        await settle()
        assert order == ["ann"] * 4
        for _ in range(3):
            shared.release("ann")
            await settle()
        for task in waiting:
            task.cancel()
        return order[4:]

    assert asyncio.run(run()) == ["bob", "bob", "ann"]


def test_who_gives_up_gives_its_place_back() -> None:
    """Also who is cancelled at the moment in which a place becomes free."""

    async def run() -> None:
        shared, chance = SharedPlaces(2), random.Random(0)
        for _ in range(200):
            tasks = [asyncio.create_task(shared.of(chance.choice("ab")).acquire()) for _ in range(2)]
            await settle()
            late = [asyncio.create_task(shared.of("c").acquire()) for _ in range(3)]
            await settle()
            shared_keys = list(shared._held.elements())
            for key in shared_keys:
                shared.release(key)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, *late, return_exceptions=True)
        await asyncio.wait_for(asyncio.gather(*(shared.of("d").acquire() for _ in range(2))), 1)

    asyncio.run(run())


def test_a_place_that_becomes_free_goes_to_nobody_who_has_just_given_up() -> None:
    async def run() -> None:
        shared = SharedPlaces(1)
        await shared.acquire("a")
        gone, stays = (asyncio.create_task(shared.acquire(key)) for key in "bc")
        await settle()
        gone.cancel()
        shared.release("a")  # before the cancelled task has run
        await asyncio.wait_for(stays, 60)
        assert gone.cancelled()
        shared.release("c")
        await asyncio.wait_for(shared.acquire("d"), 60)

    asyncio.run(run())
