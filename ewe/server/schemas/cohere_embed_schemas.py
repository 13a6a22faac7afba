"""/v2/embed on the wire, in the form of Cohere's Embed API."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from ewe.server.schemas.cohere_messages import TextPart
from ewe.server.schemas.common import AnswerModel, FullText, RequestModel, Text, joined, only_types
from ewe.server.schemas.embed_rerank_schemas import MOST_TEXTS, EmbeddingRequest, Encoding


class EmbedInput(RequestModel):
    """A text in parts."""

    content: Annotated[
        list[TextPart],
        Field(min_length=1),
        only_types({"text"}, "content", "send text", {"image_url": "images"}),
    ]


class _Texts(EmbeddingRequest):
    field: ClassVar[str] = "texts"


class EmbedRequest(RequestModel):
    """Texts to encode, in `texts` or `inputs`; truncate: what becomes of one that is longer than the encoder reads."""

    labels: ClassVar[frozenset[str]] = frozenset({"priority"})

    model: Text | None = None
    texts: Annotated[list[FullText], Field(min_length=1, max_length=MOST_TEXTS)] | None = None
    inputs: Annotated[list[EmbedInput], Field(min_length=1, max_length=MOST_TEXTS)] | None = None
    input_type: Literal["search_document", "search_query", "classification", "clustering"] | None = None
    embedding_types: Annotated[list[Encoding], Field(min_length=1, max_length=8)] | None = None
    output_dimension: Annotated[int, Field(ge=1)] | None = None
    truncate: Literal["NONE", "END"] | None = None
    images: None = None
    max_tokens: None = None
    priority: int | None = None

    @model_validator(mode="after")
    def _has_texts(self) -> Self:
        if (self.texts is None) == (self.inputs is None):
            raise ValueError("give either texts or inputs")
        return self

    @property
    def all_texts(self) -> list[str]:
        """The texts, whichever way they came."""
        return self.texts or [joined(item.content) for item in self.inputs or ()]

    @property
    def in_openai_form(self) -> EmbeddingRequest:
        """The same to /v1/embeddings."""
        return _Texts(
            model=self.model,
            input=self.all_texts,
            dimensions=self.output_dimension,
            input_type="query" if self.input_type == "search_query" else "passage",
            truncate_prompt_tokens=None if self.truncate == "NONE" else -1,
        )


class ReadTokens(AnswerModel):
    """Token counts of a request that writes nothing."""

    input_tokens: int


class ApiVersion(AnswerModel):
    """Whose form it is."""

    version: Literal["2"] = "2"


class EmbedMeta(AnswerModel):
    """What was read; nothing is billed for."""

    api_version: ApiVersion = ApiVersion()
    billed_units: ReadTokens
    tokens: ReadTokens


class EmbedResponse(AnswerModel):
    """All vectors by their encoding, in the order of the texts."""

    id: str
    response_type: Literal["embeddings_by_type"] = "embeddings_by_type"
    embeddings: dict[Encoding, list[list[float] | str]]
    texts: list[str]
    meta: EmbedMeta
