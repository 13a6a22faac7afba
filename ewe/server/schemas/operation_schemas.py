"""On the wire: health, versions, tokens."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ewe.engine.startup.engine_summary import EngineSummary
from ewe.server.schemas.chat_schemas import ChatTool, Continuation, Message, TemplateOptions
from ewe.server.schemas.common import AnswerModel, RequestModel, Text


class State(AnswerModel):
    """The server's state."""

    status: Literal["alive", "ready"]


class Ready(State):
    """A server that can be asked; capacity: answers that may be under way at once, those that wait included."""

    capacity: int


class Health(State):
    """The server's state and what is on in its engine.

    engine: null while the model is being loaded, and for who has no key of a server that needs one.
    """

    engine: EngineSummary | None


class PageStart(AnswerModel):
    """What the page says before the first question: what could be asked, and what is on.

    checks_every_sentence: whether every sentence of an answer is checked, or only those that the model is unsure of.
    """

    examples: list[str]
    engine: EngineSummary | None
    checks_every_sentence: bool


class Version(AnswerModel):
    """The engine's version."""

    version: str
    name: str = "ewe-engine"


class TokenizeRequest(Continuation):
    """A text, or a conversation that goes through the model's chat template first.

    add_special_tokens: whether the tokenizer adds its own (without it: to a text, and not to a conversation).
    """

    model: Text | None = None
    prompt: Text | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=2048)] | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None

    chat_template: None = None
    chat_template_kwargs: TemplateOptions | None = None
    tools: Annotated[list[ChatTool], Field(max_length=256)] | None = None

    @model_validator(mode="after")
    def _has_one_text(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("give either prompt or messages")
        if (self.tools or self.continue_final_message) and self.messages is None:
            raise ValueError("tools, continue_final_message: only beside messages")
        return self


class TokenizeResponse(AnswerModel):
    """Token ids, as the engine gets them; token_strs: the tokenizer's names for them, if asked for."""

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None = None


class DetokenizeRequest(RequestModel):
    """Token ids."""

    model: Text | None = None
    tokens: list[int]


class DetokenizeResponse(AnswerModel):
    """Their text, special tokens included."""

    prompt: str
