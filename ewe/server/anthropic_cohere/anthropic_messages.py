"""/v1/messages: chat completions in the form of Anthropic's Messages API, with citations of what the request brings."""

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from ewe.server.answering import token_counts
from ewe.server.answering.answers import stop_string, usage
from ewe.server.answering.citer import Citer
from ewe.server.answering.streaming import StreamedAnswer, respond
from ewe.server.anthropic_cohere.anthropic_events import MessageEvents
from ewe.server.anthropic_cohere.anthropic_sources import Sources
from ewe.server.engine_client.bridge import Run
from ewe.server.engine_service import Service, service_of
from ewe.server.http.error_forms import ANTHROPIC, COUNT_TOKENS, end_of_stream
from ewe.server.http.error_responses import RefusedError
from ewe.server.openai.chat import chat_order
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas import anthropic_answers as answers
from ewe.server.schemas import anthropic_schemas as schemas
from ewe.server.schemas.chat_schemas import ChatRequest, Message, TemplateOptions
from ewe.server.schemas.common import EVENT_STREAM, joined
from ewe.server.traffic.orders import Order
from ewe.server.traffic.pacing import turn_of
from ewe.text.sentences import SentenceSplitter, Span
from ewe.text.tool_calls.use import Piece
from ewe.types import Generation, ToolCall

router = APIRouter(tags=["Anthropic"], route_class=RequestRoute)


@router.post(ANTHROPIC, response_model=answers.MessageResponse, responses={200: EVENT_STREAM, **answers.ERRORS})
async def create_message(body: schemas.MessagesRequest, request: Request) -> Response:
    """Goes on with a conversation; what it says that the request's own texts bear out has citations of them."""
    service, sources = service_of(request), Sources(body.messages)
    order = chat_order(service, _chat(body, sources, body.max_tokens))
    run = await service.begin(request, order)
    citer = Citer(service, run, turn_of(request.scope), order.question, sources.passages)
    return await respond(request, run, _Answer(service, run, order, body, sources, citer), body.stream)


@router.post(COUNT_TOKENS, responses=answers.ERRORS)
async def count_tokens(body: schemas.CountRequest, request: Request) -> answers.TokenCount:
    """How many tokens a conversation and its texts to cite have; nothing is written."""
    order = chat_order(service_of(request), _chat(body, Sources(body.messages)))
    return answers.TokenCount(input_tokens=await token_counts.count_tokens(request, order))


def _chat(body: schemas.CountRequest, sources: Sources, max_tokens: int | None = None) -> ChatRequest:
    """The same request to chat completions, where texts to cite are documents beside the conversation."""
    system = joined(body.system)
    first = [Message(role="system", content=system)] if system else []
    return ChatRequest.of_other_form(
        model=body.model,
        messages=[*first, *(part for message in body.messages for part in message.in_openai_form)],
        max_tokens=max_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stop=body.stop_sequences or None,
        stream=body.stream,
        documents=sources.documents or None,
        memory=body.memory,
        cache_salt=body.cache_salt,
        ewe=body.ewe,
        chat_template_kwargs=TemplateOptions(enable_thinking=body.thinks),
        response_format=body.response_format,
        tools=body.chat_tools,
        tool_choice=body.chat_tool_choice,
        continue_final_message=body.begins_answer,
        parallel_tool_calls=not (body.tool_choice and body.tool_choice.disable_parallel_tool_use),
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
        order: Order,
        body: schemas.MessagesRequest,
        sources: Sources,
        citer: Citer,
    ) -> None:
        super().__init__(service, run, order.body, order.tools)
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
        answer = self._answer(0, generation)
        thought = [answers.ThinkingBlock.of(answer.reasoning)] if answer.reasoning else []
        calls = [answers.ToolUseBlock.of(call) for call in answer.tool_calls]
        blocks = [answers.AnswerBlock(text=answer.text)] if answer.text or not thought + calls else []
        if self._citer.is_on:
            blocks = list(_merged(await self._blocks(answer.text, 0, self._splitter.split(answer.text))))
        return await self._ended(generation, [*thought, *blocks, *calls], len(calls))

    def begin(self) -> str:
        """The record that opens the message."""
        return self._events.begin(self._opening)

    async def _pieces(self, choice: int, pieces: Sequence[Piece]) -> str:
        """Of content and calls; where there is something to cite, text waits until its sentence is whole."""
        if not self._citer.is_on:
            return await super()._pieces(choice, pieces)
        records = ""
        for piece in pieces:
            if isinstance(piece, str):
                self._written += piece
                records += await self._tell_spans(self._splitter.completed(self._written[self._sent :]))
            else:
                records += await self._tell_rest() + await super()._pieces(choice, [piece])
        return records

    async def _tell_rest(self) -> str:
        """The blocks of sentences that nothing will be added to."""
        return await self._tell_spans(self._splitter.split(self._written[self._sent :]))

    async def _tell_spans(self, spans: Sequence[Span]) -> str:
        """The blocks of sentences that are whole; spans: counted from the end of what is in blocks."""
        begin = self._sent
        moved = [(begin + start, begin + end) for start, end in spans]
        blocks = await self._blocks(self._written, begin, moved)
        self._sent = moved[-1][1] if moved else begin
        return "".join(map(self._events.block, blocks))

    def _text(self, choice: int, text: str) -> str:
        return self._events.block(answers.AnswerBlock(text=text))

    def _reasoning(self, choice: int, text: str) -> str:
        return self._events.thinking(text)

    def _call(self, choice: int, place: int, call: ToolCall) -> str:
        return self._events.call(call)

    def _event(self, choice: int, kind: str, data: Any) -> str:
        return ""  # requests cannot ask for any

    async def _finish(self, choice: int, generation: Generation) -> str:
        ended = await self._ended(generation, [], len(self._calls[choice]))
        return await self._tell_rest() + self._events.finish(ended)

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

    async def _ended(self, generation: Generation, blocks: list[Any], num_calls: int) -> answers.MessageResponse:
        counted = usage([generation])
        cached = counted.prompt_tokens_details.cached_tokens
        stop = stop_string(generation, self._stops, self._service.engine.prompts.tokenizer)
        stopped: answers.StopReason = "tool_use" if num_calls else "end_turn"
        ended = stopped if generation.finish_reason == "stop" else "max_tokens"
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
