"""Answers of /v1/messages, in the form of Anthropic's Messages API: text in blocks, and what each cites."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, Self

from ewe.server.schemas.common import AnswerModel, errors_in
from ewe.server.schemas.ewe_result import EweResult
from ewe.types import ToolCall


class SearchResultLocation(AnswerModel):
    """Where in a search result a sentence is borne out; the end is excluded."""

    type: Literal["search_result_location"] = "search_result_location"
    cited_text: str
    search_result_index: int
    source: str
    title: str | None
    start_block_index: int
    end_block_index: int


class CharLocation(AnswerModel):
    """Where in a plain text, by code points; the end is excluded."""

    type: Literal["char_location"] = "char_location"
    cited_text: str
    document_index: int
    document_title: str | None
    start_char_index: int
    end_char_index: int
    file_id: None = None


class ContentBlockLocation(AnswerModel):
    """Where in a document of blocks; the end is excluded."""

    type: Literal["content_block_location"] = "content_block_location"
    cited_text: str
    document_index: int
    document_title: str | None
    start_block_index: int
    end_block_index: int
    file_id: None = None


Location = SearchResultLocation | CharLocation | ContentBlockLocation


class AnswerBlock(AnswerModel):
    """A piece of the answer, and what it cites."""

    type: Literal["text"] = "text"
    text: str
    citations: list[Location] | None = None


class ThinkingBlock(AnswerModel):
    """What the model reasoned before it answered; signature: a digest, since clients send back no block without one."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str

    @classmethod
    def of(cls, thinking: str) -> Self:
        """The block of this text."""
        return cls(thinking=thinking, signature=hashlib.sha256(thinking.encode()).hexdigest())


class ToolUseBlock(AnswerModel):
    """A call that the answer asks for."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, Any]

    @classmethod
    def of(cls, call: ToolCall) -> Self:
        """The block of this call; halves of surrogate pairs, which models can spell and UTF-8 cannot, become `?`."""
        unicode = json.dumps(json.loads(call.arguments), ensure_ascii=False).encode(errors="replace")
        return cls(id=call.id, name=call.name, input=json.loads(unicode))


class TokenCount(AnswerModel):
    """The tokens of a conversation with what it brings along."""

    input_tokens: int


class MessageUsage(AnswerModel):
    """Token counts; output_tokens: all that were written, those that were taken back too.

    cache_read_input_tokens: those of memory units whose keys and values were there already; input_tokens: the others.
    """

    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]


class MessageResponse(AnswerModel):
    """The answer; ewe: what the engine knows of it, as in chat completions, null while it is written."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[AnswerBlock | ThinkingBlock | ToolUseBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    usage: MessageUsage
    ewe: EweResult | None = None


class AnthropicErrorDetail(AnswerModel):
    """What went wrong; param and code are not Anthropic's."""

    type: str
    message: str
    param: str | None = None
    code: str | None = None


class AnthropicError(AnswerModel):
    """An error in Anthropic's form."""

    type: Literal["error"] = "error"
    error: AnthropicErrorDetail


ERRORS = errors_in(AnthropicError)
"""For `responses=` of the route."""
