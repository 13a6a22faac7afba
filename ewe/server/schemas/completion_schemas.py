"""/v1/completions on the wire: prompts in, texts out."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ewe.server.schemas.common import AnswerModel, Text, Usage
from ewe.server.schemas.ewe_result import EweResult
from ewe.server.schemas.sampling_schemas import SamplingRequest

DEFAULT_MAX_TOKENS = 16
"""OpenAI's."""

_TokenIds = Annotated[list[int], Field(min_length=1)]


class CompletionRequest(SamplingRequest):
    """Texts or token ids to go on with; with several prompts the choices of each follow those of the one before.

    max_tokens 0 with echo: the prompts alone, as who scores texts asks for them.
    """

    prompt: (
        Text | _TokenIds | Annotated[list[Text], Field(min_length=1)] | Annotated[list[_TokenIds], Field(min_length=1)]
    )
    max_tokens: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    echo: bool | None = None
    add_special_tokens: bool | None = None

    prompt_embeds: None = None
    suffix: Literal[""] | None = None

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if self.only_prompts and not self.echo:
            raise ValueError("max_tokens: 0 asks for no text, which is only of use with echo: ask for 1 or more")
        return self

    @property
    def only_prompts(self) -> bool:
        """Whether nothing is to be written."""
        return self.max_tokens == 0

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts, one or many."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if isinstance(self.prompt[0], int):
            return [self.prompt]
        return list(self.prompt)


class CompletionLogprobs(AnswerModel):
    """Per token: where its text begins, its natural-log probability, and the likeliest ones with theirs.

    The first token of a prompt that is repeated has none.
    """

    text_offset: list[int]
    token_logprobs: list[float | None]
    tokens: list[str]
    top_logprobs: list[dict[str, float] | None] | None


class CompletionChoice(AnswerModel):
    """One text."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: Literal["stop", "length"]


class CompletionResponse(AnswerModel):
    """Finished texts."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage
    system_fingerprint: str
    ewe: EweResult
