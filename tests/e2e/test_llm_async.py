"""AsyncLLM: many requests at once, streams, cancelling, and an event loop that ends before the engine does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from e2e.llm_rig import loaded, tiny_llm

from ewe import AsyncLLM, SamplingParams
from ewe.errors import InvalidRequestError

PROMPTS = ["The river", "She wrote a novel", "It flows"]
CONFIG = {"memory": {"unit_tokens": 24, "retrieval_units": 3}, "cache": {"num_blocks": 300}}
LONG = SamplingParams(max_tokens=350, ignore_eos=True)


def params(seed: int = 1, n: int = 1) -> SamplingParams:
    return SamplingParams(max_tokens=12, ignore_eos=True, temperature=0.8, seed=seed, n=n)


@pytest.fixture(scope="module")
def llm() -> Iterator[AsyncLLM]:
    engine = AsyncLLM("tiny", config=CONFIG, loaded=loaded())
    yield engine
    engine.llm.check_integrity()
    engine.close()


def test_concurrent_requests_are_those_of_the_blocking_interface(llm: AsyncLLM) -> None:
    async def ask() -> list[list[tuple[int, ...]]]:
        results = await asyncio.gather(*(llm.generate(prompt, params(n=2)) for prompt in PROMPTS))
        return [[generation.token_ids for generation in result] for result in results]

    found = asyncio.run(ask())
    with tiny_llm() as blocking:
        flat = [generation.token_ids for generation in blocking.generate(PROMPTS, params(n=2))]
    assert found == [flat[0:2], flat[2:4], flat[4:6]]


def test_streams_run_side_by_side(llm: AsyncLLM) -> None:
    async def read(prompt: str) -> tuple[str, str]:
        text = ""
        async for event in llm.stream(prompt, params()):
            if event.kind == "text":
                text += event.data["text"]
            last = event
        return text, last.generation.text

    async def read_all() -> list[tuple[str, str]]:
        return await asyncio.gather(*map(read, PROMPTS))

    for streamed, final in asyncio.run(read_all()):
        assert streamed == final


def test_cancelling_aborts_the_request(llm: AsyncLLM) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(llm.generate(PROMPTS[0], LONG))
        await asyncio.sleep(0)  # lets it submit
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await llm.generate(PROMPTS[1], params())  # the loop has seen the abort when it takes this one in

    asyncio.run(cancel())
    assert not llm.llm.client._waiting
    assert not llm.llm.client.engine.core.active.sequences


def test_an_event_loop_that_ends_early_does_not_end_the_engine(llm: AsyncLLM) -> None:
    """Its queues are gone while the engine still writes for them."""

    async def start() -> None:
        stream = llm.stream(PROMPTS[0], LONG)
        await anext(stream)
        llm.llm.client.forget = lambda request_id, abort: None  # type: ignore[method-assign]  # nobody says goodbye

    asyncio.run(start())
    del llm.llm.client.forget

    async def again() -> int:
        [result] = await llm.generate(PROMPTS[1], LONG)
        return len(result.token_ids)

    assert asyncio.run(again()) == 350
    llm.llm.client._waiting.clear()


def test_bad_requests_are_refused_before_the_first_event(llm: AsyncLLM) -> None:
    async def bad() -> None:
        with pytest.raises(InvalidRequestError, match="empty"):
            await llm.generate("")
        with pytest.raises(InvalidRequestError, match="set n to 1"):
            await anext(llm.stream("a", params(n=2)))
        with pytest.raises(InvalidRequestError, match="no chat template"):
            await llm.chat([{"role": "user", "content": "Who?"}])

    asyncio.run(bad())
