"""/v2/chat on the wire, in the form of Cohere's Chat API: what is not here is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from ewe.server.schemas.common import (
    AnswerModel,
    Document,
    ErrorDetail,
    EweOptions,
    FullText,
    JsonObject,
    RequestModel,
    StopText,
    Text,
    joined,
)
from ewe.server.schemas.ewe_result import EweResult
from ewe.server.schemas.memory_use import MemoryUse

_OFF = frozenset({"OFF", "DISABLED"})


def _check_no_tools(value: Any) -> Any:
    if value:
        raise ValueError("not supported yet: tools in /v2/chat; /v1/chat/completions has them")
    return value


def _check_parts(value: Any) -> Any:
    for part in value if isinstance(value, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise ValueError(f"not supported yet: content of the type {kind!r}; send text")
    return value


_NoTools = Annotated[Any, BeforeValidator(_check_no_tools)]
_Upper = BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value)


class TextPart(RequestModel):
    """A part of a message."""

    type: Literal["text"]
    text: Text


class InputMessage(RequestModel):
    """One turn of a conversation; citations are those of an answer that is sent back, and have no effect."""

    role: Literal["system", "user", "assistant"]
    content: Annotated[FullText | Annotated[list[TextPart], Field(min_length=1)], BeforeValidator(_check_parts)]
    citations: list[dict[str, Any]] | None = None
    tool_calls: _NoTools = None
    tool_plan: _NoTools = None
    tool_call_id: _NoTools = None


class DataDocument(RequestModel):
    """A document of fields; `text` or `snippet` is its text, else all its fields are."""

    data: Annotated[JsonObject, Field(min_length=1)]
    id: FullText | None = None

    @property
    def text(self) -> str:
        """What memory gets of it, and what can be cited."""
        own = next((self.data[name] for name in ("text", "snippet") if isinstance(self.data.get(name), str)), None)
        return own if own is not None else "\n".join(f"{name}: {value}" for name, value in self.data.items())

    def field(self, name: str) -> str:
        """A field that is a text; empty without one."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


class CitationOptions(RequestModel):
    """Whether there are citations; every other mode is the same here."""

    mode: Annotated[Literal["ENABLED", "DISABLED", "FAST", "ACCURATE", "OFF"], _Upper] | None = None


class TextFormat(RequestModel):
    """Free text."""

    type: Literal["text"]


class ThinkingConfig(RequestModel):
    """Models here think no longer than they write."""

    type: Literal["disabled"]


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

    tools: _NoTools = None
    tool_choice: _NoTools = None
    strict_tools: _NoTools = None
    response_format: TextFormat | None = None
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
    def conversation(self) -> list[tuple[Literal["system", "user", "assistant"], str]]:
        """Who said what."""
        return [(message.role, joined(message.content)) for message in self.messages]

    @property
    def cited_documents(self) -> dict[str, dict[str, Any]]:
        """The documents by id, as citations show them; those without one are called by their number."""
        documents: dict[str, dict[str, Any]] = {}
        for number, item in enumerate(self.documents or ()):
            name = (item.id if isinstance(item, DataDocument) else None) or f"doc:{number}"
            documents[name] = {"id": name, **({"text": item} if isinstance(item, str) else item.data)}
        return documents

    @property
    def memory_documents(self) -> list[Document]:
        """The documents as memory takes them; an id that two have is for the engine to refuse."""
        documents = []
        for number, item in enumerate(self.documents or ()):
            if isinstance(item, str):
                documents.append(Document(id=f"doc:{number}", text=item))
            else:
                name, title, url = item.id or f"doc:{number}", item.field("title"), item.field("url")
                documents.append(Document(id=name, text=item.text, title=title, url=url))
        return documents


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
    content_index: Literal[0] = 0
    sources: list[DocumentSource]


class TextContent(AnswerModel):
    """The text of the answer."""

    type: Literal["text"] = "text"
    text: str


class AnswerMessage(AnswerModel):
    """What the model says."""

    role: Literal["assistant"] = "assistant"
    content: list[TextContent]
    citations: list[Citation] | None = None


class Tokens(AnswerModel):
    """Token counts."""

    input_tokens: int
    output_tokens: int


class ChatUsage(AnswerModel):
    """Token counts; all that were written are among them, those that were taken back too. Nothing is billed for."""

    billed_units: Tokens
    tokens: Tokens


FinishReason = Literal["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TIMEOUT"]


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


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": CohereError, "description": "The request cannot be served as it stands."},
    "5XX": {"model": CohereError, "description": "The server cannot serve it, or not now."},
}
"""For `responses=` of the route."""
