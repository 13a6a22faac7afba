"""Answers of /v1/responses: responses, what they put out, and lists of what they were made of."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from ewe.server.schemas import chat_answers, common
from ewe.server.schemas.common import AnswerModel
from ewe.server.schemas.ewe_result import EweResult
from ewe.server.schemas.response_format import TextAnswer

Status = Literal["in_progress", "completed", "incomplete", "failed"]
ItemStatus = Literal["in_progress", "completed", "incomplete"]


class UrlCitation(common.UrlCitation):
    """The same as in chat completions, with its type."""

    type: Literal["url_citation"] = "url_citation"


class TopLogprob(chat_answers.TopLogprob):
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
    """What is said in a response."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: ItemStatus
    content: list[OutputText]


class ReasoningText(AnswerModel):
    """What a model reasons, word for word."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class OutputReasoning(AnswerModel):
    """What the model reasoned before it answered; there are no summaries of it."""

    id: str
    type: Literal["reasoning"] = "reasoning"
    status: ItemStatus
    summary: tuple[()] = ()
    content: list[ReasoningText]


class OutputCall(AnswerModel):
    """A call that the response asks for; arguments: a JSON object as text."""

    id: str
    type: Literal["function_call"] = "function_call"
    status: ItemStatus
    call_id: str
    name: str
    arguments: str


OutputItem = OutputReasoning | OutputMessage | OutputCall


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
    output: list[OutputItem]
    parallel_tool_calls: bool
    previous_response_id: str | None = None
    reasoning: dict[str, str | None]
    temperature: float
    text: TextAnswer = TextAnswer()
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    top_p: float
    truncation: Literal["auto", "disabled"] = "disabled"
    store: bool
    background: Literal[False] = False
    usage: ResponseUsage | None = None
    ewe: EweResult | None = None


class InputItems(AnswerModel):
    """What a stored response answered, in pages."""

    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedResponse(AnswerModel):
    """A response that is no longer stored."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class InputTokens(AnswerModel):
    """The tokens of what would be read."""

    object: Literal["response.input_tokens"] = "response.input_tokens"
    input_tokens: int
