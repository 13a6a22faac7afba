"""/v1/embeddings and /v1/rerank on the wire."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from ewe.server.schemas.common import AnswerModel, FullText, RequestModel, Text

MOST_TEXTS = 2048
"""OpenAI's."""


Encoding = Literal["float", "base64"]
"""How vectors are written: as numbers, or as float32 in base64, the lowest byte first."""


class EmbeddingRequest(RequestModel):
    """Texts to encode; field: where they are.

    input_type: whether they are searched for or searched, for encoders that tell these apart. truncate_prompt_tokens:
    -1 cuts what is longer than the encoder reads, which is refused else.
    """

    labels: ClassVar[frozenset[str]] = frozenset({"user"})
    field: ClassVar[str] = "input"

    model: Text | None = None
    input: FullText | Annotated[list[FullText], Field(min_length=1, max_length=MOST_TEXTS)]
    encoding_format: Encoding | None = None
    dimensions: Annotated[int, Field(ge=1)] | None = None
    input_type: Literal["query", "passage"] | None = None
    truncate_prompt_tokens: Literal[-1] | None = None
    user: str | None = None

    @field_validator("input", mode="before")
    @classmethod
    def _are_texts(cls, value: Any) -> Any:
        if isinstance(value, list) and any(isinstance(item, int | list) for item in value):
            raise ValueError(
                "send texts: token ids are another model's (LangChain: set check_embedding_ctx_length=False)"
            )
        return value

    @property
    def texts(self) -> list[str]:
        """The texts, one or many."""
        return [self.input] if isinstance(self.input, str) else self.input


class Embedding(AnswerModel):
    """One text's vector."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class ReadUsage(AnswerModel):
    """Token counts of a request that writes nothing."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingResponse(AnswerModel):
    """All vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: ReadUsage


MOST_DOCUMENTS = 1000


class RerankDocument(RequestModel):
    """A document as an object."""

    text: FullText


class RerankRequest(RequestModel):
    """What is searched for, and what was found.

    top_n: how many results (0: all). return_documents: whether they hold the texts. truncate_prompt_tokens: -1 cuts
    what is longer than the reranker reads, which is refused else.
    """

    labels: ClassVar[frozenset[str]] = frozenset({"user"})

    model: Text | None = None
    query: FullText
    documents: Annotated[list[FullText | RerankDocument], Field(min_length=1, max_length=MOST_DOCUMENTS)]
    top_n: Annotated[int, Field(ge=0)] | None = None
    return_documents: bool | None = None
    truncate_prompt_tokens: Literal[-1] | None = None
    user: str | None = None

    @property
    def texts(self) -> list[str]:
        """The documents' texts."""
        return [item if isinstance(item, str) else item.text for item in self.documents]


class RankedText(AnswerModel):
    """The text of a document."""

    text: str


class RankedDocument(AnswerModel):
    """A document by its place in the request; relevance_score: in [0, 1]."""

    index: int
    relevance_score: float
    document: RankedText | None = None


class RerankResponse(AnswerModel):
    """The documents, the most relevant first."""

    id: str
    model: str
    results: list[RankedDocument]
    usage: ReadUsage
