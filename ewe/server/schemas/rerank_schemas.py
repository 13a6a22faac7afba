"""/v1/rerank on the wire, as Jina, Cohere and vLLM have it: query and documents in, documents by relevance out."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ewe.server.schemas.common import AnswerModel, FullText, RequestModel, Text
from ewe.server.schemas.embedding_schemas import ReadUsage

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
