"""/v1/messages: chat completions in the form of Anthropic's Messages API, with citations of what the request brings."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from ewe.server.answers import stop_string, usage
from ewe.server.anthropic_events import MessageEvents
from ewe.server.anthropic_sources import Sources
from ewe.server.bridge import Run, RunEvent
from ewe.server.chat import chat_order
from ewe.server.citer import Citer
from ewe.server.engine_service import Service, service_of
from ewe.server.error_forms import ANTHROPIC, end_of_stream
from ewe.server.error_responses import RefusedError
from ewe.server.ignored import RequestRoute
from ewe.server.pacing import turn_of
from ewe.server.schemas import anthropic_answers as answers
from ewe.server.schemas import anthropic_schemas as schemas
from ewe.server.schemas.chat_schemas import NO_THINKING, ChatRequest, Message
from ewe.server.schemas.common import EVENT_STREAM, joined
from ewe.server.streaming import StreamedAnswer, respond
from ewe.text.sentences import SentenceSplitter, Span
from ewe.types import Generation

router = APIRouter(tags=["Anthropic"], route_class=RequestRoute)


@router.post(ANTHROPIC, response_model=answers.MessageResponse, responses={200: EVENT_STREAM, **answers.ERRORS})
async def create_message(body: schemas.MessagesRequest, request: Request) -> Response:
    """Goes on with a conversation; what it says that the request's own texts bear out has citations of them."""
    service, sources = service_of(request), Sources(body.messages)
    order = chat_order(_chat(body, sources))
    run = await service.begin(request, order)
    citer = Citer(service, run, turn_of(request.scope), order.question, sources.passages)
    return await respond(request, run, _Answer(service, run, order.body, body, sources, citer), body.stream)


def _chat(body: schemas.MessagesRequest, sources: Sources) -> ChatRequest:
    """The same request to chat completions, where texts to cite are documents beside the conversation."""
    system = joined(body.system)
    first = [Message(role="system", content=system)] if system else []
    return ChatRequest(
        model=body.model,
        messages=[*first, *(Message(role=message.role, content=message.text) for message in body.messages)],
        max_tokens=body.max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stop=body.stop_sequences or None,
        stream=body.stream,
        documents=sources.documents or None,  # type: ignore[arg-type]  # a list of one of the kinds it takes
        memory=body.memory,
        cache_salt=body.cache_salt,
        ewe=body.ewe,
        chat_template_kwargs=None if body.thinking is None else NO_THINKING,
    )


class _Answer(StreamedAnswer):
    """The answer in blocks: a sentence that is borne out is one of its own, what is between them another.

    White space before a sentence belongs to its block.
    """

    closing = end_of_stream(ANTHROPIC)

    def __init__(
        self,
        service: Service,
        run: Run,
        chat: Any,
        body: schemas.MessagesRequest,
        sources: Sources,
        citer: Citer,
    ) -> None:
        super().__init__(service, run, chat)
        self._stops = body.stop_sequences or ()
        self._sources, self._citer = sources, citer
        self._splitter = SentenceSplitter()
        self._written, self._sent = "", 0  # all text so far, and how much of it is in blocks
        self._opening = answers.MessageResponse(
            id=f"msg_{uuid.uuid4().hex}",
            model=service.check_model(body.model),
            content=[],
            stop_reason=None,
            stop_sequence=None,
            usage=answers.MessageUsage(input_tokens=run.opened[0].request.num_prompt_tokens, output_tokens=0),
        )
        self._events = MessageEvents()

    async def whole(self, generations: Sequence[Generation]) -> answers.MessageResponse:
        """The message with all its blocks."""
        [generation] = generations
        text, blocks = generation.text, [answers.AnswerBlock(text=generation.text)]
        if self._citer.is_on:
            blocks = list(_merged(await self._blocks(text, 0, self._splitter.split(text))))
        return await self._ended(generation, blocks)

    def begin(self) -> str:
        """The record that opens the message."""
        return self._events.begin(self._opening)

    async def tell(self, item: RunEvent) -> str:
        """Of one event; where there is something to cite, text waits until its sentence is whole."""
        if item.event.kind != "text" or not self._citer.is_on:
            return await super().tell(item)
        self._written += item.event.data["text"]
        begin = self._sent
        return await self._tell_spans(
            [(begin + a, begin + b) for a, b in self._splitter.completed(self._written[begin:])]
        )

    async def _tell_spans(self, spans: Sequence[Span]) -> str:
        """The blocks of sentences that are whole."""
        blocks = await self._blocks(self._written, self._sent, spans)
        self._sent = spans[-1][1] if spans else self._sent
        return "".join(map(self._events.block, blocks))

    def _text(self, choice: int, text: str) -> str:
        return self._events.block(answers.AnswerBlock(text=text))

    def _event(self, choice: int, kind: str, data: Any) -> str:
        return ""  # requests cannot ask for any

    async def _finish(self, choice: int, generation: Generation) -> str:
        begin = self._sent
        rest = await self._tell_spans([(begin + a, begin + b) for a, b in self._splitter.split(self._written[begin:])])
        return rest + self._events.finish(await self._ended(generation, []))

    def close(self) -> None:
        """Ends the checks of citations."""
        self._citer.close()

    def fail(self, error: RefusedError) -> str:
        """The record that says why the stream breaks off."""
        return error.record_for(ANTHROPIC)

    async def _blocks(self, text: str, begin: int, spans: Sequence[Span]) -> list[answers.AnswerBlock]:
        """A block of each sentence; begin: where the first block does."""
        blocks = []
        for (_, end), quotes in zip(spans, await self._citer.quotes(text, spans), strict=True):
            cited = self._sources.locations(quotes) or None
            blocks.append(answers.AnswerBlock(text=text[begin:end], citations=cited))
            begin = end
        return blocks

    async def _ended(self, generation: Generation, blocks: list[answers.AnswerBlock]) -> answers.MessageResponse:
        counted = usage([generation])
        cached = counted.prompt_tokens_details.cached_tokens
        stop = stop_string(generation, self._stops, self._service.engine.prompts.tokenizer)
        ended: answers.StopReason = "end_turn" if generation.finish_reason == "stop" else "max_tokens"
        return self._opening.model_copy(
            update={
                "content": blocks,
                "stop_reason": "stop_sequence" if stop is not None else ended,
                "stop_sequence": stop,
                "usage": answers.MessageUsage(
                    input_tokens=counted.prompt_tokens - cached,
                    output_tokens=counted.completion_tokens,
                    cache_read_input_tokens=cached,
                ),
                "ewe": await self._result([generation]),
            }
        )


def _merged(blocks: Sequence[answers.AnswerBlock]) -> Iterator[answers.AnswerBlock]:
    """The blocks, those without citations that follow each other as one."""
    plain = ""
    for block in blocks:
        if block.citations is None:
            plain += block.text
            continue
        if plain:
            yield answers.AnswerBlock(text=plain)
        plain = ""
        yield block
    if plain:
        yield answers.AnswerBlock(text=plain)
