"""AsyncLLM: the Python interface of the engine for asyncio."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ewe.client import Answer
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.request import Document, Prompt, Request, stream_request
from ewe.errors import EngineDeadError
from ewe.llm import LLM
from ewe.text.conversation import Conversation
from ewe.text.tool_calls.tools import ToolChoice
from ewe.types import Generation, MemoryOptions
from ewe.types.sampling_params import SamplingParams


class AsyncLLM:
    """LLM's calls as coroutines, with LLM's arguments. Cancelling a task aborts its request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.llm = LLM(*args, **kwargs)

    async def generate(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        documents: Sequence[Document] | None = None,
        memory: MemoryOptions | None = None,
        adapter: str = "",
        closed_world: bool | None = None,
    ) -> list[Generation]:
        """The `n` answers to one prompt; raises as LLM.generate does."""
        chosen = sampling_params or SamplingParams()
        request = Request(prompt, chosen, documents, memory=memory, adapter=adapter, closed_world=closed_world)
        return await self._run([request])

    async def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        documents: Sequence[Document] | None = None,
        memory: MemoryOptions | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: ToolChoice = "auto",
        adapter: str = "",
        closed_world: bool | None = None,
        thinking: bool | None = None,
        continue_final_message: bool = False,
    ) -> list[Generation]:
        """Answers to one conversation or many, in order, as LLM.chat gives them."""
        use = self.llm.tool_use(tools, tool_choice)
        requests = self.llm.chat_requests(
            messages, sampling_params, documents, memory, use, adapter, closed_world, thinking, continue_final_message
        )
        answers = await self._run(requests)
        return answers if use is None else [use.read(answer) for answer in answers]

    async def stream(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        documents: Sequence[Document] | None = None,
        add_special_tokens: bool = True,
        question: str = "",
        memory: MemoryOptions | None = None,
        adapter: str = "",
        closed_world: bool | None = None,
    ) -> AsyncIterator[StreamEvent]:
        """Events of one answer as it is written, as LLM.stream yields them."""
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[StreamEvent | EngineDeadError] = asyncio.Queue()

        def put_error(answer: Answer) -> None:
            if isinstance(answer, EngineDeadError):
                _post(loop, events, answer)

        listener = partial(_post, loop, events)
        request = stream_request(
            prompt, sampling_params, listener, documents=documents, question=question, memory=memory,
            add_special_tokens=add_special_tokens, adapter=adapter, closed_world=closed_world,
        )  # fmt: skip
        sequence = self.llm.client.build(request)
        finished = False
        try:
            self.llm.client.submit(sequence, put_error)
            while not finished:
                event = await events.get()
                if isinstance(event, EngineDeadError):
                    raise event
                finished = event.kind == "finish"
                yield event
        finally:
            self.llm.client.forget(sequence.request.id, abort=not finished)

    def close(self) -> None:
        """Aborts what is under way and ends the engine's threads."""
        self.llm.close()

    async def _run(self, requests: Sequence[Request]) -> list[Generation]:
        sequences = [self.llm.client.build(request) for request in requests]
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[tuple[int, Answer]] = asyncio.Queue()
        left = sum(1 + len(sequence.siblings) for sequence in sequences)
        answered: dict[tuple[int, int], Generation] = {}
        try:
            for number, sequence in enumerate(sequences):
                self.llm.client.submit(sequence, partial(_post_answer, loop, answers, number))
            while left:
                number, answer = await answers.get()
                if isinstance(answer, EngineDeadError):
                    raise answer
                answered[number, answer.index] = answer
                left -= 1
        finally:
            for sequence in sequences:
                self.llm.client.forget(sequence.request.id, abort=left > 0)
        return [answered[key] for key in sorted(answered)]


def _post(loop: asyncio.AbstractEventLoop, events: asyncio.Queue[Any], event: object) -> None:
    """Puts an event into a queue of an event loop, from the engine's thread."""
    with suppress(RuntimeError):  # the event loop has been closed: nobody reads, and the engine serves others
        loop.call_soon_threadsafe(events.put_nowait, event)


def _post_answer(loop: asyncio.AbstractEventLoop, answers: asyncio.Queue[Any], number: int, answer: Answer) -> None:
    _post(loop, answers, (number, answer))
