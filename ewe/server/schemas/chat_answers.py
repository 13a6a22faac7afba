"""Answers of /v1/chat/completions."""

from __future__ import annotations

from typing import Literal

from ewe.server.schemas.common import Annotation, AnswerModel, Usage
from ewe.server.schemas.ewe_result import EweResult


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


class AnswerFunction(AnswerModel):
    """A function and its arguments, a JSON object as text."""

    name: str
    arguments: str


class AnswerToolCall(AnswerModel):
    """A call that the answer asks for."""

    id: str
    type: Literal["function"] = "function"
    function: AnswerFunction


class AnswerMessage(AnswerModel):
    """The answer with its citations; content: null if there are only calls.

    reasoning_content: what the model reasoned before it answered; null if it did not.
    """

    role: Literal["assistant"] = "assistant"
    content: str | None
    reasoning_content: str | None = None
    refusal: None = None
    annotations: list[Annotation]
    tool_calls: list[AnswerToolCall] | None = None


class ChatChoice(AnswerModel):
    """One of the `n` answers."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None = None
    finish_reason: Literal["stop", "length", "tool_calls"]


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
