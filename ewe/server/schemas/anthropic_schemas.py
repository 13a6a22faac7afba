"""Requests to /v1/messages, in the form of Anthropic's Messages API: what is not here is refused by its name."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from ewe.server.schemas.anthropic_blocks import Block, Blocks, Cacheable, TextBlock, ToolResultBlock, ToolUseBlock
from ewe.server.schemas.chat_schemas import (
    CalledFunction,
    ChatTool,
    Message,
    MessageToolCall,
    NamedFunction,
    NamedTool,
    ToolFunction,
)
from ewe.server.schemas.common import EweOptions, RequestModel, StopText, Text, only_empty, only_types
from ewe.server.schemas.memory_use import MemoryUse
from ewe.server.schemas.response_format import ResponseFormat

_OF_ASSISTANTS = frozenset({"tool_use", "thinking", "redacted_thinking"})
_OF_USERS = frozenset({"tool_result", "search_result", "document"})


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_ONLY_FUNCTIONS = only_types({"custom"}, "tools", "the client's own have input_schema")
_NOTHING_SAID = "all messages must have non-empty content except for the optional final assistant message"
"""Anthropic's words."""


def _without_empty_end(messages: list[InputMessage]) -> list[InputMessage]:
    """An answer that begins with nothing is as good as one that has not begun."""
    if len(messages) > 1 and not messages[-1].content:
        messages = messages[:-1]
    if not all(message.content for message in messages):
        raise ValueError(_NOTHING_SAID)
    return messages


class InputMessage(RequestModel):
    """One turn of a conversation; only the assistant's may be empty, at the end."""

    role: Literal["user", "assistant"]
    content: Blocks

    @property
    def blocks(self) -> list[Block]:
        """The content in blocks."""
        return [TextBlock(type="text", text=self.content)] if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """What is said, without what is brought along; blocks of an answer follow each other as they were written."""
        between = "" if self.role == "assistant" else "\n"
        return between.join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @model_validator(mode="after")
    def _says_something(self) -> InputMessage:
        if not self.content:
            if self.role == "user":
                raise ValueError(_NOTHING_SAID)
            return self
        kinds = {block.type for block in self.blocks}
        if self.role == "assistant" and kinds & _OF_USERS:
            raise ValueError("content: only the user brings documents and results of tools")
        if self.role == "user" and kinds & _OF_ASSISTANTS:
            raise ValueError("content: only the assistant thinks and calls tools")
        if not kinds & {*_OF_ASSISTANTS, "tool_result"} and not self.text.strip():
            raise ValueError("content: a message needs a text, also beside documents")
        return self

    @property
    def in_openai_form(self) -> list[Message]:
        """The same to chat completions, where results of tools are messages of their own."""
        calls = [
            MessageToolCall(id=block.id, function=CalledFunction(name=block.name, arguments=_as_json(block.input)))
            for block in self.blocks
            if isinstance(block, ToolUseBlock)
        ]
        results = [
            Message(role="tool", tool_call_id=block.tool_use_id, content=block.text)
            for block in self.blocks
            if isinstance(block, ToolResultBlock)
        ]
        says_more = not results or self.text.strip()
        return [
            *results,
            *([Message(role=self.role, content=self.text, tool_calls=calls or None)] if says_more else ()),
        ]


class ThinkingConfig(RequestModel):
    """Whether a model that can reason before it answers does; its budget has no effect beside max_tokens."""

    labels: ClassVar[frozenset[str]] = frozenset({"budget_tokens"})

    type: Literal["enabled", "adaptive", "disabled"]
    budget_tokens: int | None = None


class JsonFormat(RequestModel):
    """Asks for JSON that satisfies a schema."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(RequestModel):
    """What form the answer is to have."""

    format: JsonFormat | None = None


class MessageTool(Cacheable):
    """A function that may be called; input_schema: the JSON schema of its arguments."""

    type: Literal["custom"] | None = None
    name: Text
    description: Text | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None


class ToolChoice(RequestModel):
    """Whether a function must be called, and which."""

    type: Literal["auto", "any", "tool", "none"]
    name: Text | None = None
    disable_parallel_tool_use: bool | None = None


class CountRequest(RequestModel):
    """A conversation whose tokens are counted, or that is gone on with.

    memory, cache_salt and ewe are as in chat completions.
    """

    labels: ClassVar[frozenset[str]] = frozenset({"cache_control", "metadata", "service_tier"})

    model: Text | None = None
    messages: Annotated[list[InputMessage], Field(min_length=1, max_length=2048), AfterValidator(_without_empty_end)]
    system: Text | list[TextBlock] | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    stop_sequences: Annotated[list[StopText], Field(max_length=16)] | None = None
    stream: bool | None = None
    memory: MemoryUse | None = None
    cache_salt: Annotated[Text, Field(max_length=256)] | None = None
    ewe: EweOptions = EweOptions()

    tools: Annotated[list[MessageTool], Field(max_length=256), _ONLY_FUNCTIONS] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    output_config: OutputConfig | None = None
    output_format: JsonFormat | None = None

    mcp_servers: Annotated[Any, only_empty("not supported yet: MCP servers; the client's own tools are")] = None
    container: None = None
    context_management: None = None

    cache_control: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if self.begins_answer and not self.messages[-1].text.strip():
            raise ValueError("messages: the last one begins the answer, so it needs a text")
        if self.ewe.events or self.ewe.stream == "draft":
            raise ValueError("ewe: events and drafts are not supported here; /v1/chat/completions has them")
        return self

    @property
    def begins_answer(self) -> bool:
        """Whether the last message begins the answer, which the model goes on with."""
        return self.messages[-1].role == "assistant"

    @property
    def thinks(self) -> bool | None:
        """Whether the model reasons before it answers; None: as the server's settings say."""
        return None if self.thinking is None else self.thinking.type != "disabled"

    @property
    def response_format(self) -> ResponseFormat | None:
        """The form of the answer as chat completions have it."""
        form = self.output_format or (self.output_config.format if self.output_config else None)
        return ResponseFormat.of_schema(form.schema_) if form else None

    @property
    def chat_tools(self) -> list[ChatTool] | None:
        """The tools as chat completions have them."""
        return [
            ChatTool(
                type="function",
                function=ToolFunction(
                    name=tool.name, description=tool.description, parameters=tool.input_schema, strict=tool.strict
                ),
            )
            for tool in self.tools or ()
        ] or None

    @property
    def chat_tool_choice(self) -> Literal["none", "auto", "required"] | NamedTool | None:
        """Which of them must be called, as chat completions say it."""
        if self.tool_choice is None:
            return None
        if self.tool_choice.type == "tool":
            return NamedTool(type="function", function=NamedFunction(name=self.tool_choice.name or ""))
        return "required" if self.tool_choice.type == "any" else self.tool_choice.type


class MessagesRequest(CountRequest):
    """A conversation to go on with."""

    max_tokens: Annotated[int, Field(ge=1, lt=1 << 31)]
