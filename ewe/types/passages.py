"""Passages, what looks for them, and the lanes of the memory that they come into."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ewe.errors import InvalidRequestError
from ewe.types.sampling_params import MemoryOptions


class Lane(StrEnum):
    """The two first-in-first-out lanes of a working memory."""

    RETRIEVAL = "retrieval"
    VERIFICATION = "verification"


@dataclass(frozen=True, slots=True)
class Passage:
    """One text with its origin.

    veracity is how far the source can be believed, in [0, 1]; 0 keeps the passage out of memory. metadata: further
    fields by name, as JSON has them; `retrieval.filters.where` asks for their values.
    Raises InvalidRequestError for a veracity outside [0, 1] or a text that is not a string.
    """

    id: str
    text: str
    title: str = ""
    source: str = ""
    url: str = ""
    date: str = ""
    veracity: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidRequestError(f"passage {self.id!r}: text must be a string, got {type(self.text).__name__}")
        if not 0.0 <= self.veracity <= 1.0:
            raise InvalidRequestError(f"passage {self.id!r}: veracity must lie in [0, 1], got {self.veracity}")


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage with the retriever's own score (higher is better); owner: whose alone it is, empty for all."""

    passage: Passage
    score: float
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """What a request looks for: passages (None: as many as the settings say), beside them long-term memories."""

    text: str
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    top_k: int | None = None
