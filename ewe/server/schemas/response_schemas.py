"""/v1/responses on the wire: inputs in, responses and their events out.

A field of OpenAI's that the engine does not have is declared with the values that ask for nothing; any other value is
refused by its name.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from ewe.server.schemas import chat_schemas, common
from ewe.server.schemas.common import AnswerModel, Metadata, RequestModel, Text, joined
from ewe.server.schemas.ewe_result import EweResult
from ewe.server.schemas.response_format import JsonSchema, TextAnswer, TextConfig
from ewe.server.schemas.sampling_schemas import SamplingRequest

Status = Literal["in_progress", "completed", "incomplete", "failed"]


def _check_no_tools(value: Any) -> Any:
    if value:
        raise ValueError("not supported yet: tools in responses; /v1/chat/completions has them")
    return value


_NoTools = Annotated[list[Any] | None, BeforeValidator(_check_no_tools)]


class TextPart(RequestModel):
    """A part of a message: text that is asked, or text of an earlier answer as it came."""

    type: Literal["input_text", "output_text", "text"]
    text: Text
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None


class InputMessage(RequestModel):
    """One message of a conversation; id and status are those of an earlier answer and have no effect."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: Text | Annotated[list[TextPart], Field(min_length=1)]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class ResponsesRequest(SamplingRequest):
    """Something to answer. Responses are not stored, so none can go on from an earlier one by its id."""

    format_field: ClassVar[str] = "text.format"
    labels: ClassVar[frozenset[str]] = SamplingRequest.labels - {"metadata"}  # which is repeated here

    input: Text | Annotated[list[InputMessage], Field(min_length=1, max_length=2048)]
    instructions: Text | None = None
    max_output_tokens: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: list[Literal["message.output_text.logprobs"]] | None = None
    metadata: Metadata | None = None

    text: TextConfig | None = None

    max_tokens: None = None
    response_format: None = None
    n: Literal[1] | None = None
    tools: _NoTools = None
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    truncation: Literal["disabled"] | None = None
    background: Literal[False] | None = None
    previous_response_id: None = None
    conversation: None = None
    prompt: None = None

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation, instructions first; chat templates know the developer as the system."""
        messages = [InputMessage(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        first = [InputMessage(role="system", content=self.instructions)] if self.instructions else []
        return [
            {"role": "system" if message.role == "developer" else message.role, "content": joined(message.content)}
            for message in [*first, *messages]
        ]

    @property
    def json_schema(self) -> JsonSchema | None:
        """What the answer must satisfy; None for free text."""
        return self.text.format.schema_of_answer if self.text and self.text.format else None

    @property
    def wants_logprobs(self) -> int | None:
        """How many of the likeliest tokens to tell beside each token; None: no probabilities at all."""
        return (self.top_logprobs or 0) if self.include else self.top_logprobs


class UrlCitation(common.UrlCitation):
    """The same as in chat completions, with its type."""

    type: Literal["url_citation"] = "url_citation"


class TopLogprob(chat_schemas.TopLogprob):
    """A token that could have been chosen; bytes: its text in UTF-8, empty if it is no whole character."""

    bytes: Annotated[list[int], BeforeValidator(lambda value: value or [])]


class TokenLogprob(TopLogprob):
    """A token of the answer with its natural-log probability."""

    top_logprobs: list[TopLogprob]


class OutputText(AnswerModel):
    """The text with its citations."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[UrlCitation]
    logprobs: list[TokenLogprob]


class OutputMessage(AnswerModel):
    """The one thing that a response puts out."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"]
    content: list[OutputText]


class InputTokensDetails(AnswerModel):
    """cached_tokens: those of memory units whose keys and values were there already."""

    cached_tokens: int = 0
    cache_write_tokens: Literal[0] = 0


class OutputTokensDetails(AnswerModel):
    """Tokens that were written and taken back (rejected_prediction_tokens), or came before the answer.

    Both are among `output_tokens`.
    """

    reasoning_tokens: int = 0
    rejected_prediction_tokens: int


class ResponseUsage(AnswerModel):
    """Token counts of one response."""

    input_tokens: int
    input_tokens_details: InputTokensDetails = InputTokensDetails()
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ResponseError(AnswerModel):
    """Why a response failed after its stream had begun."""

    code: Literal["server_error"] = "server_error"
    message: str


class IncompleteDetails(AnswerModel):
    """Why a response ends early: it is as long as it may be, or its deadline passed."""

    reason: Literal["max_output_tokens"] | None = None


class ResponseBody(AnswerModel):
    """A response, under way or finished; fields that say what was asked repeat the request."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    completed_at: int | None = None
    status: Status
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[OutputMessage]
    parallel_tool_calls: bool
    previous_response_id: None = None
    temperature: float
    text: TextAnswer = TextAnswer()
    tool_choice: Literal["none", "auto"]
    tools: list[dict[str, Any]]
    top_p: float
    truncation: Literal["disabled"] = "disabled"
    store: Literal[False] = False
    background: Literal[False] = False
    usage: ResponseUsage | None = None
    ewe: EweResult | None = None
