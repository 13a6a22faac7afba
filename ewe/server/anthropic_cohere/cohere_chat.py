"""/v2/chat: chat completions in the form of Cohere's Chat API, with citations of documents and of what was found."""

import uuid
from collections.abc import Sequence
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from ewe.server.answering.answers import stop_string, supporting, usage
from ewe.server.answering.citer import Citer
from ewe.server.answering.streaming import StreamedAnswer, respond
from ewe.server.engine_client.bridge import Run
from ewe.server.engine_service import Service, service_of
from ewe.server.http.error_forms import COHERE
from ewe.server.http.error_responses import RefusedError
from ewe.server.http.sse import record
from ewe.server.openai.chat import answer_call, call_parts, chat_order
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas import cohere_schemas as schemas
from ewe.server.schemas.chat_schemas import ChatRequest, TemplateOptions
from ewe.server.schemas.common import EVENT_STREAM
from ewe.server.traffic.orders import Order, passages_of
from ewe.server.traffic.pacing import turn_of
from ewe.types import Generation, Passage, ToolCall

router = APIRouter(tags=["Cohere"], route_class=RequestRoute)
_REASONS: dict[str, schemas.FinishReason] = {"stop": "COMPLETE", "timeout": "TIMEOUT"}
_CHOICES: dict[str | None, Literal["none", "required"] | None] = {None: None, "NONE": "none", "REQUIRED": "required"}


@router.post(COHERE, response_model=schemas.ChatResponse, responses={200: EVENT_STREAM, **schemas.ERRORS})
async def create_cohere_chat(body: schemas.ChatRequest, request: Request) -> Response:
    """Goes on with a conversation; every sentence that a document or the datastore bears out has a citation."""
    service = service_of(request)
    order = chat_order(service, _chat(body))
    run = await service.begin(request, order)
    passages = passages_of(order.body.documents) if body.wants_citations else ()
    citer = Citer(service, run, turn_of(request.scope), order.question, passages)
    return await respond(request, run, _Answer(service, run, order, body, citer), body.stream)


def _chat(body: schemas.ChatRequest) -> ChatRequest:
    """The same request in OpenAI's form."""
    return ChatRequest.of_other_form(
        model=body.model,
        messages=[message.in_openai_form for message in body.messages],
        documents=body.memory_documents or None,
        max_tokens=body.max_tokens,
        stop=body.stop_sequences or None,
        temperature=body.temperature,
        top_p=body.p,
        top_k=body.k,
        seed=body.seed,
        frequency_penalty=body.frequency_penalty,
        presence_penalty=body.presence_penalty,
        stream=body.stream,
        memory=body.memory,
        cache_salt=body.cache_salt,
        ewe=body.ewe,
        chat_template_kwargs=TemplateOptions(enable_thinking=body.thinks),
        response_format=body.chat_format,
        tools=body.chat_tools,
        tool_choice=_CHOICES[body.tool_choice],
    )


class _Answer(StreamedAnswer):
    def __init__(self, service: Service, run: Run, order: Order, body: schemas.ChatRequest, citer: Citer) -> None:
        super().__init__(service, run, order.body, order.tools)
        self._body, self._citer = body, citer
        self._id = str(uuid.uuid4())
        self._open, self._number = "", -1  # which content is open, and the number of the last one

    async def whole(self, generations: Sequence[Generation]) -> schemas.ChatResponse:
        """The answer with its citations."""
        [generation] = generations
        counted, answer = usage([generation]), self._answer(0, generation)
        tokens = schemas.Tokens(input_tokens=counted.prompt_tokens, output_tokens=counted.completion_tokens)
        stop = stop_string(generation, self._body.stop_sequences or (), self._service.engine.prompts.tokenizer)
        reason = _REASONS.get(generation.finish_reason, "MAX_TOKENS")
        if answer.tool_calls and reason == "COMPLETE":
            reason = "TOOL_CALL"
        content: list[schemas.ThinkingContent | schemas.TextContent] = []
        if answer.reasoning:
            content.append(schemas.ThinkingContent(thinking=answer.reasoning))
        if answer.text or not answer.tool_calls:
            content.append(schemas.TextContent(text=answer.text))
        return schemas.ChatResponse(
            id=self._id,
            finish_reason=reason if stop is None else "STOP_SEQUENCE",
            message=schemas.AnswerMessage(
                content=content or None,
                tool_calls=[answer_call(call) for call in answer.tool_calls] or None,
                citations=await self._citations(generation) or None,
            ),
            usage=schemas.ChatUsage(billed_units=tokens, tokens=tokens),
            ewe=await self._result([generation]),
        )

    async def _citations(self, generation: Generation) -> list[schemas.Citation]:
        """One per sentence that anything supports: documents of the request, then what was found in the datastore."""
        if not self._body.wants_citations:
            return []
        given, citations = self._body.cited_documents, []
        spans = [(sentence.start, sentence.end) for sentence in generation.sentences]
        quotes = await self._citer.quotes(generation.text, spans)
        for sentence, quoted in zip(generation.sentences, quotes, strict=True):
            cited = {quote.id: given[quote.id] for quote in quoted}
            for name in supporting(sentence):
                if name not in given and name in generation.sources:
                    cited[name] = _shown(generation.sources[name])
            sources = [schemas.DocumentSource(id=name, document=document) for name, document in cited.items()]
            if sources:
                span = {"start": sentence.start, "end": sentence.end, "text": sentence.text}
                place = int(bool(generation.reasoning))
                citations.append(schemas.Citation(**span, content_index=place, sources=sources))
        return citations

    def begin(self) -> str:
        """The record that opens the message."""
        message = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
        return _record("message-start", id=self._id, delta={"message": message})

    def _text(self, choice: int, text: str) -> str:
        return self._content("text", text)

    def _reasoning(self, choice: int, text: str) -> str:
        return self._content("thinking", text)

    def _call(self, choice: int, place: int, call: ToolCall) -> str:
        first, rest = call_parts(call)
        return (
            self._close()
            + _record("tool-call-start", index=place, delta={"message": {"tool_calls": first}})
            + _record("tool-call-delta", index=place, delta={"message": {"tool_calls": rest}})
            + _record("tool-call-end", index=place)
        )

    def _content(self, kind: str, text: str) -> str:
        """The records of a piece of content, which opens where another kind or none is open."""
        opened = ""
        if self._open != kind:
            opened = self._close()
            self._open, self._number = kind, self._number + 1
            opened += self._told("content-start", {"type": kind, kind: ""})
        return opened + (self._told("content-delta", {kind: text}) if text else "")

    def _close(self) -> str:
        """The record that closes the content that is open."""
        ended = _record("content-end", index=self._number) if self._open else ""
        self._open = ""
        return ended

    def _told(self, kind: str, content: dict[str, Any]) -> str:
        return _record(kind, index=self._number, delta={"message": {"content": content}})

    def _event(self, choice: int, kind: str, data: Any) -> str:
        return ""  # requests cannot ask for any

    async def _finish(self, choice: int, generation: Generation) -> str:
        answer = await self.whole([generation])
        records = "" if self._open == "text" or self._calls[choice] else self._content("text", "")
        for index, citation in enumerate(answer.message.citations or ()):
            records += _record("citation-start", index=index, delta={"message": {"citations": citation}})
            records += _record("citation-end", index=index)
        delta = {"finish_reason": answer.finish_reason, "usage": answer.usage}
        return records + self._close() + _record("message-end", id=self._id, delta=delta, ewe=answer.ewe)

    def close(self) -> None:
        """Ends the checks of citations."""
        self._citer.close()

    def fail(self, error: RefusedError) -> str:
        """The record that says why the stream breaks off."""
        return error.record_for(COHERE)


def _shown(passage: Passage) -> dict[str, Any]:
    """A passage of the datastore as a document."""
    fields = {"id": passage.id, "title": passage.title, "text": passage.text, "url": passage.url}
    return {name: value for name, value in fields.items() if value}


def _record(kind: str, **fields: Any) -> str:
    return record({"type": kind, **fields}, kind)
