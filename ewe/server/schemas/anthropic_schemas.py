"""Requests to /v1/messages, in the form of Anthropic's Messages API: what is not here is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from ewe.server.schemas.common import EweOptions, FullText, RequestModel, StopText, Text
from ewe.server.schemas.memory_use import MemoryUse

_KNOWN = frozenset({"text", "search_result", "document"})
_UNSUPPORTED_BLOCKS = {"image": "images", "tool_use": "tools", "tool_result": "tools", "thinking": "thinking"}
_UNSUPPORTED_SOURCES = {"base64": "PDF files", "url": "addresses", "file": "files"}


def _check_blocks(value: Any) -> Any:
    for block in value if isinstance(value, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(kind, str) and kind not in _KNOWN:
            what = _UNSUPPORTED_BLOCKS.get(kind, f"blocks of the type {kind!r}")
            raise ValueError(f"not supported yet: {what}; send text, search_result or document blocks")
    return value


def _check_source(value: Any) -> Any:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind not in ("text", "content"):
        what = _UNSUPPORTED_SOURCES.get(kind, f"sources of the type {kind!r}")
        raise ValueError(f"not supported yet: {what} as documents; send their text")
    return value


def _check_no_tools(value: Any) -> Any:
    if value:
        raise ValueError("not supported yet: tools in messages; /v1/chat/completions has them")
    return value


_NoTools = Annotated[Any, BeforeValidator(_check_no_tools)]


class CitationsConfig(RequestModel):
    """Whether a block may be cited."""

    enabled: bool | None = None


class TextBlock(RequestModel):
    """Text; citations are taken so that an answer can be sent back as it came, and have no effect."""

    labels: ClassVar[frozenset[str]] = frozenset({"cache_control"})

    type: Literal["text"]
    text: Text
    citations: list[dict[str, Any]] | None = None
    cache_control: dict[str, Any] | None = None


class _Cited(RequestModel):
    labels: ClassVar[frozenset[str]] = frozenset({"cache_control"})

    citations: CitationsConfig | None = None
    cache_control: dict[str, Any] | None = None

    @property
    def may_be_cited(self) -> bool:
        """Whether the answer may cite it."""
        return bool(self.citations and self.citations.enabled)


class SearchResultBlock(_Cited):
    """A text that was found; its content's blocks are what can be cited."""

    type: Literal["search_result"]
    source: Text
    title: Text
    content: Annotated[list[TextBlock], Field(min_length=1)]


class PlainTextSource(RequestModel):
    """A document as one text, cited by its code points."""

    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: FullText


class ContentSource(RequestModel):
    """A document in blocks, which are what can be cited."""

    type: Literal["content"]
    content: FullText | Annotated[list[TextBlock], Field(min_length=1)]


class DocumentBlock(_Cited):
    """A document."""

    type: Literal["document"]
    source: Annotated[PlainTextSource | ContentSource, Field(discriminator="type"), BeforeValidator(_check_source)]
    title: Text | None = None
    context: None = None


_Block = Annotated[TextBlock | SearchResultBlock | DocumentBlock, Field(discriminator="type")]
_Blocks = Annotated[Text | Annotated[list[_Block], Field(min_length=1)], BeforeValidator(_check_blocks)]


class InputMessage(RequestModel):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    content: _Blocks

    @property
    def blocks(self) -> list[TextBlock | SearchResultBlock | DocumentBlock]:
        """The content in blocks."""
        return [TextBlock(type="text", text=self.content)] if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """What is said, without what is brought along."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))

    @model_validator(mode="after")
    def _says_something(self) -> InputMessage:
        if not self.text.strip():
            raise ValueError("content: a message needs a text, also beside documents")
        if self.role == "assistant" and any(not isinstance(block, TextBlock) for block in self.blocks):
            raise ValueError("content: only the user brings documents")
        return self


class ThinkingConfig(RequestModel):
    """Models here think no longer than they write."""

    type: Literal["disabled"]


class MessagesRequest(RequestModel):
    """A conversation to go on with; memory, cache_salt and ewe are as in chat completions."""

    labels: ClassVar[frozenset[str]] = frozenset({"cache_control", "metadata", "service_tier"})

    model: Text | None = None
    messages: Annotated[list[InputMessage], Field(min_length=1, max_length=2048)]
    max_tokens: Annotated[int, Field(ge=1, lt=1 << 31)]
    system: Text | list[TextBlock] | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    stop_sequences: Annotated[list[StopText], Field(max_length=16)] | None = None
    stream: bool | None = None
    memory: MemoryUse | None = None
    cache_salt: Annotated[Text, Field(max_length=256)] | None = None
    ewe: EweOptions = EweOptions()

    tools: _NoTools = None
    tool_choice: _NoTools = None
    mcp_servers: _NoTools = None
    thinking: ThinkingConfig | None = None
    container: None = None
    context_management: None = None
    output_config: None = None
    output_format: None = None

    cache_control: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    service_tier: str | None = None

    @model_validator(mode="after")
    def _can_be_answered(self) -> MessagesRequest:
        if self.messages[-1].role != "user":
            raise ValueError("messages: the last one must be the user's; beginning the answer is not supported yet")
        if self.ewe.events or self.ewe.stream == "draft":
            raise ValueError("ewe: events and drafts are not supported here; /v1/chat/completions has them")
        return self
