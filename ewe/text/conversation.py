"""Conversations as chat models take them: their shape, and what is asked in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.text.follow_up import topic_of_questions

Message = Mapping[str, Any]
Conversation = Sequence[Message]

_EXPECTED = '[{"role": "user", "content": "a text"}, ...]'


def as_conversations(messages: Conversation | Sequence[Conversation]) -> list[Conversation]:
    """One conversation or many, as a list of them. Raises InvalidRequestError that says what is expected."""
    if _is_list(messages) and any(map(_is_list, messages)):
        return [check_conversation(item, f"messages[{index}]") for index, item in enumerate(messages)]
    return [check_conversation(messages)]


def check_conversation(messages: Any, name: str = "messages", continues: bool = False) -> Conversation:
    """The messages, each with one text; raises InvalidRequestError, calling them `name`, if they are no conversation.

    A content may be a list of parts, as OpenAI's clients send it. continues: whether the last message is to be gone on
    with.
    """
    if not _is_list(messages):
        raise InvalidRequestError(f"{name} must be a list, {_EXPECTED}, got {_kind(messages)}")
    if not messages:
        raise InvalidRequestError(f"{name} is empty: give at least one message, {_EXPECTED}")
    checked = [_checked_message(message, f"{name}[{index}]") for index, message in enumerate(messages)]
    if continues:
        _check_begun(checked[-1])
    return checked


def _checked_message(given: Any, name: str) -> Message:
    if not isinstance(given, Mapping):
        raise InvalidRequestError(f"{name} must be a message as in {_EXPECTED}, got {_kind(given)}")
    message: Message = given
    content = message.get("content")
    if content and _is_list(content):
        texts = [_text_of(part, f"{name}: content[{place}]") for place, part in enumerate(content)]
        message = {**message, "content": "\n".join(texts)}  # as the server joins them
    for key in ("role", "content"):
        if key == "content" and message.get("tool_calls") and message.get("content") is None:
            continue  # a model that calls tools need not say anything
        if not isinstance(message.get(key), str):
            raise InvalidRequestError(
                f'{name} must have a text under "{key}", as in {_EXPECTED}, got {_kind(message.get(key))}'
            )
    return message


def _text_of(part: Any, name: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    text = part.get(kind) if kind in ("text", "refusal") else None
    if not isinstance(text, str):
        raise InvalidRequestError(
            f'{name} must be a text, {{"type": "text", "text": "a text"}}, got {_kind(part) if kind is None else kind}'
        )
    return text


def _check_begun(message: Message) -> None:
    if message["role"] != "assistant" or message.get("tool_calls") or not message["content"].strip():
        raise InvalidRequestError(
            "messages: the last one is to be gone on with, so it must be the assistant's, with a text and without calls"
        )


def question_of(messages: Conversation) -> str:
    """The user's last message of a conversation: what is to be answered; empty if the user says nothing."""
    return next((str(message["content"]) for message in reversed(messages) if message.get("role") == "user"), "")


def topic_of(messages: Conversation) -> str:
    """What the user's last message is about where it follows up on an earlier one; empty where it stands alone."""
    return topic_of_questions([str(message["content"]) for message in messages if message.get("role") == "user"])


def texts_of(messages: Conversation) -> list[str]:
    """All texts of a conversation, those of calls too."""
    calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [*(str(message["content"]) for message in messages), *(str(call["arguments"]) for call in calls)]


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
