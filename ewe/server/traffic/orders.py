"""What a request asks of the engine, before it is let in."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ewe.engine.request import Prompt
from ewe.errors import InvalidRequestError
from ewe.server.schemas.common import Document
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.text.tool_calls.chat_prompts import ChatPrompts
from ewe.text.tool_calls.use import ToolUse
from ewe.types import Passage


@dataclass(frozen=True, slots=True)
class Order:
    """What a request asks of the engine: `count` prompts, made by `prompts` in a thread of its own.

    texts: the field that they are made of, and the texts in it.
    max_tokens: what the request asks for, in its field `length_field`; without it an answer may have
    default_max_tokens (None: what the context leaves). question: what retrieval and verification are told in place of a
    prompt that holds more; topic: what that follows up on. tools: what may be called. reasons: whether what the model
    reasons before it answers is told apart from its text. prefill: how the answer begins, which prompts end with.
    only_prompts: whether answers are left out of what is told.
    """

    body: SamplingRequest
    prompts: Callable[[ChatPrompts], Sequence[Prompt]]
    texts: tuple[str, Sequence[str]]
    count: int = 1
    max_tokens: int | None = None
    default_max_tokens: int | None = None
    length_field: str = "max_tokens"
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    special_tokens: bool = True
    question: str = ""
    topic: str = ""
    tools: ToolUse | None = None
    reasons: bool = True
    prefill: str = ""
    only_prompts: bool = False

    @property
    def form_field(self) -> str:
        """The field that asks for the form of the answer: the tools' if there are any, since they are part of it."""
        if self.tools is not None:
            return "tools"
        return self.body.form_field


def tool_texts(tools: ToolUse | None) -> list[str]:
    """What templates write of tools into a prompt, about."""
    return [json.dumps(tool.to_openai(), ensure_ascii=False) for tool in tools.request.tools] if tools else []


def passages_of(documents: Sequence[Document | str] | None) -> list[Passage]:
    """Documents of a request as passages; raises InvalidRequestError if two have the same id."""
    passages = []
    for number, item in enumerate(documents or (), 1):
        document = Document(text=item) if isinstance(item, str) else item
        values = document.model_dump(exclude={"id"})
        passages.append(Passage(id=document.id or f"document-{number}", **values))
    if len({passage.id for passage in passages}) < len(passages):
        raise InvalidRequestError("documents: two of them have the same id")
    return passages
