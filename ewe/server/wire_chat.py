"""/v1/chat/completions on the wire: conversations in, answers and chunks out.

Owns: these JSON shapes. Knows the shared ones.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ewe.server.wire import Annotation, AnswerModel, EweResult, RequestModel, Text, Usage
from ewe.server.wire_sampling import SamplingRequest

_Empty = Annotated[list[Any], Field(max_length=0)]


class TextPart(RequestModel):
    """A part of a message; only text is understood."""

    type: Literal["text"]
    text: Text


class Message(RequestModel):
    """One message of a conversation.

    annotations are taken so that an answer can be sent back as it came; like the fields that must be empty, they have
    no effect.
    """

    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(min_length=1)]
    annotations: list[dict[str, Any]] | None = None
    refusal: None = None
    tool_calls: _Empty | None = None
    function_call: None = None
    audio: None = None

    @property
    def text(self) -> str:
        """The content, its parts joined by line breaks."""
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


class ChatRequest(SamplingRequest):
    """A conversation to go on with."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=2048)]
    max_completion_tokens: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    tools: _Empty | None = None
    tool_choice: Literal["none", "auto"] | None = None
    functions: _Empty | None = None
    parallel_tool_calls: bool | None = None

    add_generation_prompt: Literal[True] | None = None
    add_special_tokens: Literal[False] | None = None
    audio: None = None
    chat_template: None = None
    chat_template_kwargs: None = None
    continue_final_message: Literal[False] | None = None
    echo: Literal[False] | None = None
    modalities: list[Literal["text"]] | None = None
    prediction: None = None
    web_search_options: None = None


class TopLogprob(AnswerModel):
    """A token that could have been chosen; bytes: its text in UTF-8, null if it is no whole character."""

    token: str
    logprob: float
    bytes: list[int] | None


class TokenLogprob(TopLogprob):
    """A token of the answer; the tokens' texts add up to the text, but for a stop string."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(AnswerModel):
    """Natural-log probabilities of the model's own distribution, before temperature and penalties."""

    content: list[TokenLogprob]
    refusal: None = None


class AnswerMessage(AnswerModel):
    """The answer with its citations."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[Annotation]


class ChatChoice(AnswerModel):
    """One of the `n` answers."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None = None
    finish_reason: Literal["stop", "length"]


class ChatResponse(AnswerModel):
    """A finished answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    system_fingerprint: str
    ewe: EweResult
