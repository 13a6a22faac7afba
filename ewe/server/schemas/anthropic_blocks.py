"""Blocks of conversations in the form of Anthropic's Messages API: what is not here is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from ewe.server.schemas.common import FullText, JsonObject, RequestModel, Text, joined, only_types

_KNOWN = frozenset({"text", "search_result", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"})
_UNSUPPORTED_SOURCES = {"base64": "PDF files", "url": "addresses", "file": "files"}


def _check_source(value: Any) -> Any:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and kind not in ("text", "content"):
        what = _UNSUPPORTED_SOURCES.get(kind, f"sources of the type {kind!r}")
        raise ValueError(f"not supported yet: {what} as documents; send their text")
    return value


def _check_said(text: str) -> str:
    if not text:
        raise ValueError("text content blocks must be non-empty")  # in Anthropic's words
    return text


class CitationsConfig(RequestModel):
    """Whether a block may be cited."""

    enabled: bool | None = None


class Cacheable(RequestModel):
    """What other servers can be told to keep encoded; here that has no effect."""

    labels: ClassVar[frozenset[str]] = frozenset({"cache_control"})

    cache_control: dict[str, Any] | None = None


class TextBlock(Cacheable):
    """Text; citations are taken so that an answer can be sent back as it came, and have no effect."""

    type: Literal["text"]
    text: Annotated[Text, AfterValidator(_check_said)]
    citations: list[dict[str, Any]] | None = None


class _Cited(Cacheable):
    citations: CitationsConfig | None = None

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


class ToolUseBlock(Cacheable):
    """A call that an earlier answer asked for."""

    type: Literal["tool_use"]
    id: Text
    name: Text
    input: JsonObject


class ToolResultBlock(Cacheable):
    """What came of a call."""

    type: Literal["tool_result"]
    tool_use_id: Text
    content: Annotated[Text | list[TextBlock] | None, only_types({"text"}, "results of tools", "send text")] = None
    is_error: bool | None = None

    @property
    def text(self) -> str:
        """What the model is told of it."""
        return f"Error: {joined(self.content)}" if self.is_error else joined(self.content)


class ThinkingBlock(RequestModel):
    """What an earlier answer reasoned; taken so that it can be sent back as it came, and without effect."""

    type: Literal["thinking", "redacted_thinking"]
    thinking: Text | None = None
    signature: Text | None = None
    data: Text | None = None


Block = Annotated[
    TextBlock | SearchResultBlock | DocumentBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock,
    Field(discriminator="type"),
]
Blocks = Annotated[
    Text | list[Block],
    only_types(_KNOWN, "blocks", "send text, search_result or document blocks", {"image": "images"}),
]
