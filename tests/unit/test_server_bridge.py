"""From the engine's thread to a stream's records: nothing is lost, and what comes together goes together."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server's packages are not installed")

from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.server.answering import streaming
from ewe.server.engine_client.bridge import EventLoopBridge, RunEvent
from ewe.server.http.error_responses import RefusedError
from ewe.server.http.sse import DEATH, DONE, PING, record
from ewe.server.openai.chat import _ChatAnswer
from ewe.server.schemas.chat_answers import ChatLogprobs

COUNT = 20_000


def test_messages_of_a_thread_arrive_in_their_order_and_none_is_lost() -> None:
    async def receive() -> list[int]:
        bridge: EventLoopBridge[int] = EventLoopBridge(asyncio.get_running_loop())
        found: list[int] = []
        done = asyncio.Event()

        def take(message: int) -> None:
            found.append(message)
            if message == COUNT - 1:
                done.set()

        thread = threading.Thread(target=lambda: [bridge.put(take, number) for number in range(COUNT)])
        thread.start()
        await asyncio.wait_for(done.wait(), 400)
        thread.join()
        return found

    assert asyncio.run(receive()) == list(range(COUNT))


def test_messages_that_come_while_the_loop_is_busy_wake_it_once() -> None:
    async def receive(monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[int]]:
        loop = asyncio.get_running_loop()
        bridge: EventLoopBridge[int] = EventLoopBridge(loop)
        found: list[int] = []
        real, calls = loop.call_soon_threadsafe, []

        def counted(call: Callable[..., Any], *arguments: Any) -> Any:
            calls.append(call)
            return real(call, *arguments)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
        for number in range(16):  # the loop is in this function, and so is busy
            bridge.put(found.append, number)
        while len(found) < 16:
            await asyncio.sleep(0)
        bridge.put(found.append, 16)
        while len(found) < 17:
            await asyncio.sleep(0)
        return len(calls), found

    with pytest.MonkeyPatch.context() as patch:
        assert asyncio.run(receive(patch)) == (2, list(range(17)))


def test_a_closed_loop_is_no_error_for_the_engine() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    EventLoopBridge[int](loop).put(print, 1)


class Told:
    """A run of given batches, and an answer that writes its events down; "bad" is one that fails.

    A batch "dead" is the end of the engine.
    """

    closing = DONE

    def __init__(self, *batches: str) -> None:
        self.batches = batches

    async def events(self, silence_s: float | None) -> AsyncIterator[list[RunEvent]]:
        for batch in self.batches:
            if batch == "dead":
                raise RefusedError(503, "no more", code="engine_dead")
            yield [RunEvent(0, StreamEvent(kind, {})) for kind in batch.split()]

    def begin(self) -> str:
        return record("begin")

    async def tell(self, item: RunEvent) -> str:
        if item.event.kind == "bad":
            raise RefusedError(500, "no more", code="engine_error")
        return record(item.event.kind)

    def end(self) -> str:
        return record("end")

    def fail(self, error: RefusedError) -> str:
        return record(error.body["error"]["code"])


@pytest.mark.parametrize(
    ("batches", "sent"),
    [
        (["a b", "", "c"], [["begin"], ["a", "b"], ["ping"], ["c"], ["end", "[DONE]"]]),
        (["a", "b bad c"], [["begin"], ["a"], ["b", "engine_error", "[DONE]"]]),
        (["dead"], [["begin"], ["death", "engine_dead", "[DONE]"]]),
        (["a b", "dead"], [["begin"], ["a", "b"], ["death", "engine_dead", "[DONE]"]]),
    ],
)
def test_what_comes_together_is_sent_together_and_a_failure_keeps_what_came_before_it(
    batches: list[str], sent: list[list[str]]
) -> None:
    async def collect() -> list[str]:
        told: Any = Told(*batches)
        return [piece async for piece in streaming._records(told, told, 1.0)]

    def words(piece: str) -> list[str]:
        plain = piece.replace(PING, record("ping")).replace(DEATH, record("death")).replace(DONE, record("[DONE]"))
        return [json.loads(part.removeprefix("data: ")) for part in plain.split("\n\n")[:-1]]

    assert [words(piece) for piece in asyncio.run(collect())] == sent


def test_the_log_probabilities_of_many_tokens_are_made_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    makers: list[threading.Thread] = []
    monkeypatch.setattr(streaming, "token_pieces", lambda *_: [])
    monkeypatch.setattr(ChatLogprobs, "model_validate", lambda _: makers.append(threading.current_thread()))
    answer: Any = object.__new__(_ChatAnswer)
    answer._wants_logprobs = True
    answer._run = SimpleNamespace(tenant="", opened=[SimpleNamespace(request=SimpleNamespace(prompt_ids=()))])
    queues = SimpleNamespace(ends=SimpleNamespace(submit=lambda tenant, work: asyncio.to_thread(work)))
    answer._service = SimpleNamespace(engine=SimpleNamespace(prompts=SimpleNamespace(tokenizer=None)), queues=queues)
    asyncio.run(answer._logprobs(None))
    assert len(makers) == 1
    assert makers[0] is not threading.current_thread()
