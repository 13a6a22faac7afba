"""Requests to /v1/responses.

A field of OpenAI's that the engine does not have is declared with the values that ask for nothing; any other value is
refused by its name.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ewe.errors import InvalidRequestError
from ewe.server.schemas.chat_schemas import Effort, ToolFunction, thinks_at
from ewe.server.schemas.common import Metadata, RequestModel, Text, only_empty, only_types
from ewe.server.schemas.response_format import JsonSchema, TextConfig
from ewe.server.schemas.response_items import InputItem, InputMessage, messages_of
from ewe.server.schemas.sampling_schemas import SamplingRequest
from ewe.text.tool_calls.tools import ToolRequest

MOST_ITEMS = 2048
"""Of one conversation, those of the responses that it follows among them."""


class FunctionTool(ToolFunction):
    """A function that may be called."""

    type: Literal["function"]


class NamedFunction(RequestModel):
    """The one function that must be called."""

    type: Literal["function"]
    name: Text


class ReasoningConfig(RequestModel):
    """How much a model reasons before it answers."""

    effort: Effort | None = None


class ResponsesRequest(SamplingRequest):
    """Something to answer; previous_response_id: the stored response that it follows."""

    format_field: ClassVar[str] = "text.format"
    labels: ClassVar[frozenset[str]] = SamplingRequest.labels - {"metadata", "store"}  # which have an effect here

    input: Text | Annotated[list[InputItem], Field(min_length=1, max_length=MOST_ITEMS)]
    instructions: Text | None = None
    max_output_tokens: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: list[Literal["message.output_text.logprobs", "reasoning.encrypted_content"]] | None = None
    metadata: Metadata | None = None

    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    previous_response_id: Text | None = None

    tools: (
        Annotated[list[FunctionTool], Field(max_length=256), only_types({"function"}, "tools", "there are functions")]
        | None
    ) = None
    tool_choice: Literal["none", "auto", "required"] | NamedFunction | None = None
    parallel_tool_calls: bool | None = None

    max_tokens: None = None
    response_format: None = None
    structured_outputs: None = None
    guided_json: None = None
    guided_choice: None = None
    guided_regex: None = None
    guided_grammar: None = None
    n: Literal[1] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: Annotated[Literal[False] | None, only_empty("not supported: use stream, or a batch")] = None
    conversation: Annotated[None, only_empty("not supported: use previous_response_id")] = None
    prompt: None = None

    @property
    def items(self) -> list[InputItem]:
        """What is said now."""
        return [InputMessage(role="user", content=self.input)] if isinstance(self.input, str) else self.input

    def messages(self, before: Sequence[InputItem] = ()) -> list[dict[str, Any]]:
        """Instructions and conversation; before: what it follows. Raises InvalidRequestError for too many items."""
        if (count := len(before) + len(self.items)) > MOST_ITEMS:
            raise InvalidRequestError(f"input: {count} items with those that it follows; {MOST_ITEMS} is the most")
        first = [InputMessage(role="system", content=self.instructions)] if self.instructions else []
        return messages_of([*first, *before, *self.items])

    @property
    def thinks(self) -> bool | None:
        """Whether the model reasons before it answers; None: as the server's settings say."""
        return None if self.reasoning is None else thinks_at(self.reasoning.effort)

    @property
    def tool_request(self) -> ToolRequest | None:
        """The tools that may be called; raises InvalidRequestError."""
        tools = [{"type": "function", "function": tool.model_dump(exclude={"type"})} for tool in self.tools or ()]
        choice = self.tool_choice
        named = {"type": "function", "function": {"name": choice.name}} if isinstance(choice, NamedFunction) else choice
        return ToolRequest.from_openai(tools, named, self.parallel_tool_calls)

    @property
    def json_schema(self) -> JsonSchema | None:
        """What the answer must satisfy; None for free text."""
        return self.text.format.schema_of_answer if self.text and self.text.format else None

    @property
    def wants_logprobs(self) -> int | None:
        """How many of the likeliest tokens to tell beside each token; None: no probabilities at all."""
        asked = "message.output_text.logprobs" in (self.include or ())
        return (self.top_logprobs or 0) if asked else self.top_logprobs
