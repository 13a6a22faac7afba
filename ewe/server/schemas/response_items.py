"""Items of inputs to /v1/responses: messages, calls of tools with their results, and what was reasoned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from ewe.server.schemas.chat_schemas import RefusalPart
from ewe.server.schemas.common import RequestModel, Text, joined, only_types


class TextPart(RequestModel):
    """A part of a message: text that is asked, or text of an earlier answer as it came."""

    type: Literal["input_text", "output_text", "text"]
    text: Text
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None


_Part = Annotated[TextPart | RefusalPart, Field(discriminator="type")]
_Content = Annotated[
    Text | Annotated[list[_Part], Field(min_length=1)],
    only_types(
        {"input_text", "output_text", "text", "refusal"},
        "parts",
        "send text",
        {"input_image": "images", "input_file": "files", "input_audio": "audio"},
    ),
]


class InputMessage(RequestModel):
    """One message of a conversation; id and status are those of an earlier answer and have no effect."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: _Content
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class FunctionCall(RequestModel):
    """A call that an earlier answer asked for; arguments: a JSON object as text."""

    type: Literal["function_call"]
    call_id: Text
    name: Text
    arguments: Text
    id: str | None = None
    status: str | None = None


class FunctionCallOutput(RequestModel):
    """What came of a call."""

    type: Literal["function_call_output"]
    call_id: Text
    output: Text | list[TextPart]
    id: str | None = None
    status: str | None = None


class ReasoningItem(RequestModel):
    """What an earlier answer reasoned; taken so that it can be sent back as it came, and without effect."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: list[dict[str, Any]] | None = None
    content: list[dict[str, Any]] | None = None
    encrypted_content: str | None = None
    status: str | None = None


_KINDS = {  # by type the name of the class, which is left out of what errors call a field
    "message": "InputMessage",
    "function_call": "FunctionCall",
    "function_call_output": "FunctionCallOutput",
    "reasoning": "ReasoningItem",
}


def _kind(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "message" if kind is None else str(kind)


def _check_kind(value: Any) -> Any:
    if _kind(value) not in _KINDS:
        raise ValueError(f"not supported yet: items of the type {_kind(value)!r}; there are {', '.join(_KINDS)}")
    return value


InputItem = Annotated[
    Annotated[InputMessage, Tag("InputMessage")]
    | Annotated[FunctionCall, Tag("FunctionCall")]
    | Annotated[FunctionCallOutput, Tag("FunctionCallOutput")]
    | Annotated[ReasoningItem, Tag("ReasoningItem")],
    Discriminator(lambda value: _KINDS.get(_kind(value))),
    BeforeValidator(_check_kind),
]


def messages_of(items: Iterable[InputItem]) -> list[dict[str, Any]]:
    """The conversation as chat templates take it: calls belong to a message, and the developer is the system."""
    messages: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, InputMessage):
            role = "system" if item.role == "developer" else item.role
            messages.append({"role": role, "content": joined(item.content)})
        elif isinstance(item, FunctionCallOutput):
            messages.append({"role": "tool", "tool_call_id": item.call_id, "content": joined(item.output)})
        elif isinstance(item, FunctionCall):
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": ""})
            call = {"name": item.name, "arguments": item.arguments}
            messages[-1].setdefault("tool_calls", []).append({"id": item.call_id, "type": "function", "function": call})
    return messages
