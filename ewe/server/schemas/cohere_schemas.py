"""/v2/chat on the wire, in the form of Cohere's Chat API: what is not here is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from ewe.server.schemas.chat_answers import AnswerToolCall
from ewe.server.schemas.chat_schemas import ChatTool
from ewe.server.schemas.cohere_messages import DataDocument, InputMessage
from ewe.server.schemas.common import (
    AnswerModel,
    Document,
    ErrorDetail,
    EweOptions,
    FullText,
    RequestModel,
    StopText,
    Text,
    errors_in,
)
from ewe.server.schemas.ewe_result import EweResult
from ewe.server.schemas.memory_use import MemoryUse
from ewe.server.schemas.response_format import ResponseFormat

_OFF = frozenset({"OFF", "DISABLED"})


_Upper = BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value)


class CitationOptions(RequestModel):
    """Whether there are citations; every other mode is the same here."""

    mode: Annotated[Literal["ENABLED", "DISABLED", "FAST", "ACCURATE", "OFF"], _Upper] | None = None


class FormatOfAnswer(RequestModel):
    """Free text, or JSON: any object, or what satisfies a schema."""

    type: Literal["text", "json_object"]
    json_schema: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _fits(self) -> FormatOfAnswer:
        if self.type == "text" and self.json_schema is not None:
            raise ValueError("json_schema: only with the type json_object")
        return self


class ThinkingConfig(RequestModel):
    """Whether a model that can reason before it answers does; its budget has no effect beside max_tokens."""

    labels: ClassVar[frozenset[str]] = frozenset({"token_budget"})

    type: Literal["enabled", "disabled"]
    token_budget: int | None = None


class ChatRequest(RequestModel):
    """A conversation to go on with; memory, cache_salt and ewe are as in /v1/chat/completions."""

    labels: ClassVar[frozenset[str]] = frozenset({"priority"})

    model: Text | None = None
    messages: Annotated[list[InputMessage], Field(min_length=1, max_length=2048)]
    documents: Annotated[list[FullText | DataDocument], Field(max_length=1000)] | None = None
    citation_options: CitationOptions | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=1 << 31)] | None = None
    stop_sequences: Annotated[list[StopText], Field(max_length=16)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    p: Annotated[float, Field(gt=0, le=1)] | None = None
    k: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    frequency_penalty: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=0, le=1)] | None = None
    stream: bool | None = None
    memory: MemoryUse | None = None
    cache_salt: Annotated[Text, Field(max_length=256)] | None = None
    ewe: EweOptions = EweOptions()

    tools: Annotated[list[ChatTool], Field(max_length=256)] | None = None
    tool_choice: Annotated[Literal["REQUIRED", "NONE"], _Upper] | None = None
    strict_tools: bool | None = None
    response_format: FormatOfAnswer | None = None
    safety_mode: Literal["OFF"] | None = None
    logprobs: Literal[False] | None = None
    thinking: ThinkingConfig | None = None

    priority: int | None = None

    @model_validator(mode="after")
    def _can_be_answered(self) -> ChatRequest:
        if self.ewe.events or self.ewe.stream == "draft":
            raise ValueError("ewe: events and drafts are not supported here; /v1/chat/completions has them")
        return self

    @property
    def wants_citations(self) -> bool:
        """Whether the answer comes with citations."""
        return self.citation_options is None or self.citation_options.mode not in _OFF

    @property
    def thinks(self) -> bool | None:
        """Whether the model reasons before it answers; None: as the server's settings say."""
        return None if self.thinking is None else self.thinking.type == "enabled"

    @property
    def chat_tools(self) -> list[ChatTool] | None:
        """The tools, each as strict as all of them are to be."""
        strict = {"strict": bool(self.strict_tools)}
        tools = self.tools or ()
        return [one.model_copy(update={"function": one.function.model_copy(update=strict)}) for one in tools] or None

    @property
    def chat_format(self) -> ResponseFormat | None:
        """The form of the answer as chat completions have it."""
        form = self.response_format
        if form is None or form.json_schema is None:
            return None if form is None else ResponseFormat(type=form.type)
        return ResponseFormat.of_schema(form.json_schema)

    @property
    def cited_documents(self) -> dict[str, dict[str, Any]]:
        """The documents by id, as citations show them."""
        return {name: {"id": name, **item.data} for name, item in self._named_documents}

    @property
    def memory_documents(self) -> list[Document]:
        """The documents as memory takes them; an id that two have is for the engine to refuse."""
        return [
            Document(id=name, text=item.text, title=item.field("title"), url=item.field("url"))
            for name, item in self._named_documents
        ]

    @property
    def _named_documents(self) -> list[tuple[str, DataDocument]]:
        """The documents with their ids; those without one are called by their number."""
        given = [DataDocument(data={"text": item}) if isinstance(item, str) else item for item in self.documents or ()]
        return [(item.id or f"doc:{number}", item) for number, item in enumerate(given)]


class DocumentSource(AnswerModel):
    """A text that bears a sentence out: a document of the request as it came, or what the server found."""

    type: Literal["document"] = "document"
    id: str
    document: dict[str, Any]


class Citation(AnswerModel):
    """The sources of the text between two code points, the end excluded."""

    type: Literal["TEXT_CONTENT"] = "TEXT_CONTENT"
    start: int
    end: int
    text: str
    content_index: int = 0
    sources: list[DocumentSource]


class TextContent(AnswerModel):
    """The text of the answer."""

    type: Literal["text"] = "text"
    text: str


class ThinkingContent(AnswerModel):
    """What the model reasoned before it answered."""

    type: Literal["thinking"] = "thinking"
    thinking: str


class AnswerMessage(AnswerModel):
    """What the model says, and the calls that it asks for."""

    role: Literal["assistant"] = "assistant"
    content: list[ThinkingContent | TextContent] | None
    tool_calls: list[AnswerToolCall] | None = None
    citations: list[Citation] | None = None


class Tokens(AnswerModel):
    """Token counts."""

    input_tokens: int
    output_tokens: int


class ChatUsage(AnswerModel):
    """Token counts; all that were written are among them, those that were taken back too. Nothing is billed for."""

    billed_units: Tokens
    tokens: Tokens


FinishReason = Literal["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TIMEOUT", "TOOL_CALL"]


class ChatResponse(AnswerModel):
    """The answer; ewe: what the engine knows of it."""

    id: str
    finish_reason: FinishReason
    message: AnswerMessage
    usage: ChatUsage
    ewe: EweResult


class CohereError(AnswerModel):
    """An error in Cohere's form; error: more of it than Cohere's says."""

    message: str
    error: ErrorDetail


ERRORS = errors_in(CohereError)
"""For `responses=` of the route."""
