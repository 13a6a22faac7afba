"""Requests to /v1/chat/completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from ewe.errors import InvalidRequestError
from ewe.server.schemas.common import RequestModel, Text, joined, only_empty, only_types
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.text.tool_calls.tools import ToolRequest

_UNSUPPORTED_PARTS = {
    "image_url": "images", "input_audio": "audio", "file": "files", "video_url": "videos",
}  # fmt: skip


class TextPart(RequestModel):
    """A part of a message; only text is understood."""

    type: Literal["text"]
    text: Text


class RefusalPart(RequestModel):
    """What an earlier answer said in refusing, which is a text like any other here."""

    type: Literal["refusal"]
    refusal: Text

    @property
    def text(self) -> str:
        """What was said."""
        return self.refusal


_Part = Annotated[TextPart | RefusalPart, Field(discriminator="type")]
_Content = Annotated[
    Text | Annotated[list[_Part], Field(min_length=1)] | None,
    only_types({"text", "refusal"}, "parts", "send text", _UNSUPPORTED_PARTS),
]
_BeforeTools = Annotated[Any, only_empty("not supported: this is the form before tools; use tools and tool_choice")]


class CalledFunction(RequestModel):
    """A function and its arguments, a JSON object as text."""

    name: Text
    arguments: Text = ""


class MessageToolCall(RequestModel):
    """A call that an earlier answer asked for."""

    id: Text
    type: Literal["function"] = "function"
    function: CalledFunction


def check_message(role: str, content: object, tool_calls: Sequence[object] | None, tool_call_id: str | None) -> None:
    """Raises ValueError for parts of a message that do not go together."""
    if content is None and not (role == "assistant" and tool_calls):
        raise ValueError("content: only an assistant's message with tool_calls may have none")
    if tool_calls and role != "assistant":
        raise ValueError("tool_calls: only an assistant's message may have them")
    if (role == "tool") != (tool_call_id is not None):
        raise ValueError("tool_call_id: this goes with the role tool, and the role with it")


class Message(RequestModel):
    """One message of a conversation; only one that calls tools may have no content.

    refusal: what an earlier answer said in place of a content. annotations and reasoning_content are taken so that an
    answer can be sent back as it came; like the fields that must be empty, they have no effect.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: _Content = None
    name: Text | None = None
    tool_calls: list[MessageToolCall] | None = None
    tool_call_id: Text | None = None
    annotations: list[dict[str, Any]] | None = None
    reasoning_content: Text | None = None
    refusal: Text | None = None
    function_call: _BeforeTools = None
    audio: None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Message:
        refuses = self.refusal is not None or any(isinstance(part, RefusalPart) for part in self.content or ())
        if refuses and self.role != "assistant":
            raise ValueError("refusal: only an assistant's message may have one")
        check_message(self.role, self.refusal or self.content, self.tool_calls, self.tool_call_id)
        return self

    @property
    def for_template(self) -> dict[str, Any]:
        """The message as chat templates take it: they know the developer as the system."""
        message: dict[str, Any] = {
            "role": "system" if self.role == "developer" else self.role,
            "content": joined(self.content) or self.refusal or "",
        }
        if self.tool_calls:
            message["tool_calls"] = [call.model_dump() for call in self.tool_calls]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
            message |= {"name": self.name} if self.name else {}
        return message


class ToolFunction(RequestModel):
    """A function that may be called; parameters: the JSON schema of its arguments."""

    name: Text
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatTool(RequestModel):
    """A tool; only functions can be called."""

    type: Literal["function"]
    function: ToolFunction


class NamedFunction(RequestModel):
    """The name of a function."""

    name: Text


class NamedTool(RequestModel):
    """The one function that must be called."""

    type: Literal["function"]
    function: NamedFunction


class TemplateOptions(RequestModel):
    """What a chat template is told, as with vLLM: whether a model that can reason before it answers does."""

    enable_thinking: bool | None = None


def thinking_of(options: TemplateOptions | None) -> bool | None:
    """Whether the model reasons before it answers; None: as the server's settings say."""
    return None if options is None else options.enable_thinking


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model is to reason before it answers; here it does or does not."""


def thinks_at(effort: Effort | None) -> bool | None:
    """Whether the model reasons before it answers; None: as the server's settings say."""
    return None if effort is None else effort not in ("none", "minimal")


class Continuation(RequestModel):
    """Whether the last message, the assistant's, begins the answer; without it the model begins one behind it."""

    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None

    @model_validator(mode="after")
    def _begins_once(self) -> Self:
        if self.add_generation_prompt is not None and self.add_generation_prompt == bool(self.continue_final_message):
            raise ValueError("add_generation_prompt: this must be false with continue_final_message, and true without")
        return self


class ChatRequest(SamplingRequest, Continuation):
    """A conversation to go on with."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=2048)]
    max_completion_tokens: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    tools: Annotated[list[ChatTool], Field(max_length=256)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    functions: _BeforeTools = None
    parallel_tool_calls: bool | None = None

    add_special_tokens: Literal[False] | None = None
    audio: None = None
    chat_template: None = None
    chat_template_kwargs: TemplateOptions | None = None
    reasoning_effort: Effort | None = None
    echo: Literal[False] | None = None
    modalities: list[Literal["text"]] | None = None
    prediction: None = None
    web_search_options: None = None

    @classmethod
    def of_other_form(cls, **fields: Any) -> Self:
        """The same request as another API has it; raises InvalidRequestError for more than there may be."""
        try:
            return cls(**fields)
        except ValidationError as error:
            first = error.errors()[0]
            raise InvalidRequestError(f"{first['loc'][0]}: {first['msg']}") from error

    @property
    def thinks(self) -> bool | None:
        """Whether the model reasons before it answers; None: as the server's settings say."""
        told = thinking_of(self.chat_template_kwargs)
        return thinks_at(self.reasoning_effort) if told is None else told

    @property
    def tool_request(self) -> ToolRequest | None:
        """The tools that may be called; raises InvalidRequestError."""
        tools = [tool.model_dump() for tool in self.tools or ()]
        choice = self.tool_choice.model_dump() if isinstance(self.tool_choice, NamedTool) else self.tool_choice
        return ToolRequest.from_openai(tools, choice, self.parallel_tool_calls)
