"""Long-term memories on the wire: the shapes of /v1/memories."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ewe.config.config_evidence import SEARCH_TOP_K
from ewe.longterm.query_time import seconds
from ewe.longterm.records import MemorySource
from ewe.server.schemas.common import CHECK_UNICODE, AnswerModel, Metadata, RequestModel
from ewe.server.schemas.memory_use import MemoryChoice, MemoryPlace, Name, Share


def _seconds(time: Any) -> Any:
    """ISO dates and times, and numbers in addresses, as seconds since 1970."""
    return seconds("time", time) if isinstance(time, str) else time


_Kind = Annotated[str, Field(min_length=1, max_length=64), CHECK_UNICODE]
_Content = Annotated[str, Field(min_length=1, max_length=8192), CHECK_UNICODE]
_Time = Annotated[float, Field(allow_inf_nan=False, strict=False), BeforeValidator(_seconds)]
Action = Literal["use", "revalidate", "external_lookup", "use_with_uncertainty", "disregard"]


class MemoryDeletion(MemoryPlace):
    """What is to be deleted; scrub: whether the store is rewritten without its last traces, while others wait."""

    scrub: Annotated[bool, Field(strict=False)] = False  # in an address it is text


class MemoryReading(MemoryPlace):
    """Which memory is read; as_of: as it was at that time, if it held then."""

    as_of: _Time | None = None


class MemoryListing(MemoryReading):
    """Whose memories are listed: a user's with every agent, or what else is named; with neither all that there are.

    visible: those that a search of this user and agent sees instead. as_of: those that held then, as they were.
    """

    visible: Annotated[bool, Field(strict=False)] = False
    offset: Annotated[int, Field(ge=0, le=2**53, strict=False)] = 0
    limit: Annotated[int, Field(ge=1, le=1000, strict=False)] = 100


class Source(RequestModel):
    """Where a memory, or an opinion of one, comes from; reliability: how far that can be believed."""

    kind: _Kind = "user"
    id: Name | None = None
    reliability: Share | None = None


class NewMemory(MemoryPlace):
    """Something to remember; kind: what sort of memory it is.

    created_at: when it was written down (now); observed_at: when it was said or seen (then); valid_from: since when it
    holds. Times are seconds since 1970, or ISO dates.
    """

    content: _Content
    kind: _Kind = "fact"
    source: Source = Source()
    metadata: Metadata = Field(default_factory=dict)
    created_at: _Time | None = None
    observed_at: _Time | None = None
    valid_from: _Time | None = None


class MemoryEdit(MemoryPlace):
    """What is to be changed of a memory: fields that are left out stay, null opens a time.

    by: who says so; then `content` rewrites their own word only, and is put beside that of another source.
    """

    content: _Content | None = None
    metadata: Metadata | None = None
    valid_from: _Time | None = None
    valid_until: _Time | None = None
    by: Source | None = None


class MemorySearchRequest(MemoryChoice):
    """A question to the memories; as_of: when they must hold (at the time that the question names, or now)."""

    query: _Content
    top_k: Annotated[int, Field(ge=1, le=100)] = SEARCH_TOP_K
    as_of: _Time | None = None


class MemoryFeedback(MemoryPlace):
    """Somebody says that a memory is right or wrong."""

    correct: bool
    by: Source = Source()


class WireMemory(AnswerModel):
    """A memory; times in seconds since 1970. shared: whether it is everybody's. observed_at: when it was said or seen.

    veracity: how far it can be believed; uncertainty: how little is known about that. contradicts: ids of memories that
    say otherwise; supersedes: of those that ended when it was added. confirmed_at: when something last spoke for it, 0
    if nothing did. valid_from, valid_until: when it holds, null where that is open.
    """

    object: Literal["memory"] = "memory"
    id: str
    content: str
    kind: str
    user: str
    agent: str
    shared: bool
    source: MemorySource
    metadata: dict[str, str]
    created_at: float
    updated_at: float
    veracity: float
    uncertainty: float
    recall_count: int
    correct_count: int
    incorrect_count: int
    contradicts: list[str]
    supersedes: list[str]
    confirmed_at: float
    valid_from: float | None
    valid_until: float | None
    observed_at: float | None


class FoundMemory(AnswerModel):
    """A memory that a search found, and what becomes of it.

    belief: how far the scorer believes it; uncertainty: of that belief; similarity: to the query, as a share of the
    best one's; action: what was done last, after those that were tried; replaced_by: what was looked up in its place.
    """

    memory: WireMemory
    belief: float
    uncertainty: float
    similarity: float
    action: Action
    tried: list[Action]
    replaced_by: WireMemory | None


class MemoryList(AnswerModel):
    """What may be used, best first, warnings last; what may not; the veracity that was asked for."""

    object: Literal["list"] = "list"
    data: list[FoundMemory]
    disregarded: list[FoundMemory]
    threshold: float


class MemoryOwner(AnswerModel):
    """A user, an agent or both, and how many memories are theirs; with neither name: everybody's."""

    user: str
    agent: str
    memories: int


class MemoryPage(AnswerModel):
    """Memories as they were added, whose they are, and whether there are more behind them."""

    object: Literal["list"] = "list"
    data: list[WireMemory]
    owners: list[MemoryOwner]
    has_more: bool


class WireRevision(AnswerModel):
    """One change of a memory: when, why, on what evidence; content_before: what was replaced, empty if nothing was.

    uncertainty: after the change, null where that is not known.
    """

    number: int
    at: float
    reason: str
    veracity_before: float
    veracity_after: float
    evidence: list[str]
    content_before: str
    uncertainty: float | None


class RevisionList(AnswerModel):
    """All changes of a memory, the first first."""

    object: Literal["list"] = "list"
    data: list[WireRevision]


class SupersededMemory(AnswerModel):
    """A memory whose place another one took, and when (seconds since 1970); by: null if that was deleted."""

    memory: WireMemory
    at: float
    by: WireMemory | None
    text: str


class SupersededList(AnswerModel):
    """Memories whose place others have taken."""

    object: Literal["list"] = "list"
    data: list[SupersededMemory]


class MemoryWhy(AnswerModel):
    """Why a memory is as it is; said: the words that it was taken from; ended: what took its place."""

    memory: WireMemory
    said: str
    history: list[WireRevision]
    ended: SupersededMemory | None
    supersedes: list[WireMemory]
    contradicts: list[WireMemory]


class FeedbackAnswer(AnswerModel):
    """The memory after the feedback; counted: whether it was news (nobody counts twice)."""

    object: Literal["memory.feedback"] = "memory.feedback"
    counted: bool
    memory: WireMemory


class ErasedPart(AnswerModel):
    """What was deleted with one agent: memories, their revisions, entries of both indexes, entries of the log."""

    agent: str
    memories: int
    revisions: int
    words: int
    vectors: int
    log: int


class Deleted(AnswerModel):
    """How many memories were deleted; receipt: of a whole user, agent by agent; scrubbed: no trace is in the files."""

    object: Literal["memory.deleted"] = "memory.deleted"
    deleted: int
    receipt: list[ErasedPart] = Field(default_factory=list)
    scrubbed: bool = False
