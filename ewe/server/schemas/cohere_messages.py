"""Messages and documents of requests to /v2/chat, in Cohere's form: what is not here is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ewe.server.schemas.chat_schemas import Message, MessageToolCall, check_message
from ewe.server.schemas.common import FullText, JsonObject, RequestModel, Text, only_types


class TextPart(RequestModel):
    """A part of a message."""

    type: Literal["text"]
    text: Text


class ThinkingPart(RequestModel):
    """What an earlier answer reasoned; taken so that it can be sent back as it came, and without effect."""

    type: Literal["thinking"]
    thinking: Text


def _as_fields(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) and value else value


class DataDocument(RequestModel):
    """A document of fields, or a text; `text` or `snippet` is its text, else all its fields are."""

    data: Annotated[JsonObject, Field(min_length=1), BeforeValidator(_as_fields)]
    id: FullText | None = None

    @property
    def text(self) -> str:
        """What memory gets of it, and what can be cited."""
        own = next((self.data[name] for name in ("text", "snippet") if isinstance(self.data.get(name), str)), None)
        return own if own is not None else "\n".join(f"{name}: {value}" for name, value in self.data.items())

    def field(self, name: str) -> str:
        """A field that is a text; empty without one."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


class DocumentPart(RequestModel):
    """A result of a tool."""

    type: Literal["document"]
    document: DataDocument

    @property
    def text(self) -> str:
        """What the model is told of it."""
        return self.document.text


_Part = Annotated[TextPart | ThinkingPart | DocumentPart, Field(discriminator="type")]


class InputMessage(RequestModel):
    """One turn of a conversation; only one that calls tools may have no content.

    citations and tool_plan are those of an answer that is sent back, and have no effect.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: Annotated[
        FullText | Annotated[list[_Part], Field(min_length=1)] | None,
        only_types({"text", "thinking", "document"}, "content", "send text"),
    ] = None
    citations: list[dict[str, Any]] | None = None
    tool_calls: list[MessageToolCall] | None = None
    tool_plan: Text | None = None
    tool_call_id: Text | None = None

    @model_validator(mode="after")
    def _brings_what_its_role_may(self) -> InputMessage:
        allowed = {"tool": {"text", "document"}, "assistant": {"text", "thinking"}}.get(self.role, {"text"})
        kinds = set() if isinstance(self.content, str) else {part.type for part in self.content or ()}
        if kinds - allowed:
            unfit = ", ".join(sorted(kinds - allowed))
            raise ValueError(f"content: {unfit}: not in a message of this role ({self.role})")
        check_message(self.role, self.content, self.tool_calls, self.tool_call_id)
        return self

    @property
    def in_openai_form(self) -> Message:
        """The same to chat completions, where what was reasoned is no part."""
        content = self.content
        if isinstance(content, list):
            content = "\n".join(part.text for part in content if not isinstance(part, ThinkingPart))
        return Message(role=self.role, content=content, tool_calls=self.tool_calls, tool_call_id=self.tool_call_id)
