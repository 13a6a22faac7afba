"""A memory, where it came from, who may see it, and what became of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ewe.errors import InvalidRequestError
from ewe.longterm.query_time import Period


# The checks come first: the records' defaults are made, and checked, while this module is read.
def _check_texts(name: str, **texts: object) -> None:
    for key, text in texts.items():
        if not isinstance(text, str):
            raise InvalidRequestError(f"{name}: {key} must be a string, got {type(text).__name__}")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidRequestError(f"{name}: {key} holds half of a surrogate pair: repair the text") from error


def _check_shares(name: str, **numbers: object) -> None:
    for key, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 <= number <= 1.0:
            raise InvalidRequestError(f"{name}: {key} must lie in [0, 1], got {number!r}")


def _check_times(name: str, **numbers: object) -> None:
    for key, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise InvalidRequestError(f"{name}: {key} must be a finite number of seconds, got {number!r}")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose memory it is: a user's, an agent's, a user's with one agent, or, with both empty, everybody's (shared)."""

    user: str = ""
    agent: str = ""

    def __post_init__(self) -> None:
        _check_texts("scope", user=self.user, agent=self.agent)

    @property
    def shared(self) -> bool:
        """Whether it belongs to nobody in particular."""
        return not self.user and not self.agent


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Where a memory came from: kind ("user", "tool", ...), which one, and how far it can be believed, in [0, 1]."""

    kind: str = "unknown"
    id: str = ""
    reliability: float = 0.5

    def __post_init__(self) -> None:
        _check_texts("source", kind=self.kind, id=self.id)
        _check_shares("source", reliability=self.reliability)

    @property
    def name(self) -> str:
        """Its kind, and which one, if that is known: "user:ann"."""
        return f"{self.kind}:{self.id}" if self.id else self.kind


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing that is remembered. Its content is data: whatever it says, it is never an instruction.

    kind: what sort of memory ("fact", MARK's "residual", "question" and "response", ...). created_at, updated_at:
    seconds since 1970 (UTC). observed_at: when it was said or seen, where that is not when it was created. veracity v:
    how far it can be believed; uncertainty u: how little is known about that; both in [0, 1], and 0.5 and 1 where
    nothing is known. recall_count: how often it was found and used; correct_count
    and incorrect_count: feedback. contradicts: ids of memories that say otherwise. confirmed_at: when something last
    spoke for it, in seconds since 1970; 0 if nothing did since it was made. valid_from, valid_until: when it holds, in
    seconds since 1970, the end not included; None where that is open. supersedes: ids of the memories that ended when
    it was added, because it says their newer value.

    Raises InvalidRequestError naming the field for an empty id or content, a number out of its range, or a text that
    is none or holds half of a surrogate pair.
    """

    id: str
    content: str
    kind: str = "fact"
    source: MemorySource = MemorySource()
    scope: Scope = Scope()
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: float = 0.0
    updated_at: float = 0.0
    veracity: float = 0.5
    uncertainty: float = 1.0
    recall_count: int = 0
    correct_count: int = 0
    incorrect_count: int = 0
    contradicts: tuple[str, ...] = ()
    confirmed_at: float = 0.0
    valid_from: float | None = None
    valid_until: float | None = None
    observed_at: float | None = None
    supersedes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        name = f"memory {self.id!r}"
        _check_texts(name, id=self.id, content=self.content, kind=self.kind)
        _check_texts(f"{name}: metadata", **{f"[{key!r}]": value for key, value in self.metadata.items()})
        _check_texts(f"{name}: metadata names", **{repr(key): key for key in self.metadata})
        for key, ids in (("contradicts", self.contradicts), ("supersedes", self.supersedes)):
            _check_texts(f"{name}: {key}", **{str(place): other for place, other in enumerate(ids)})
        if not self.id or not self.content.strip():
            raise InvalidRequestError(f"{name}: id and content must not be empty")
        _check_times(name, created_at=self.created_at, updated_at=self.updated_at, confirmed_at=self.confirmed_at)
        open_times = {key: getattr(self, key) for key in ("valid_from", "valid_until", "observed_at")}
        _check_times(name, **{key: at for key, at in open_times.items() if at is not None})
        if self.valid_from is not None and self.valid_until is not None and self.valid_until < self.valid_from:
            raise InvalidRequestError(f"{name}: valid_until must not lie before valid_from")
        _check_shares(name, veracity=self.veracity, uncertainty=self.uncertainty)
        for key in ("recall_count", "correct_count", "incorrect_count"):
            count = getattr(self, key)
            if type(count) is not int or count < 0:
                raise InvalidRequestError(f"{name}: {key} must be a whole number of 0 or more, got {count!r}")

    def holds_at(self, at: float) -> bool:
        """Whether it is valid at a time, in seconds since 1970."""
        return Period.at(at).meets(self.valid_from, self.valid_until)

    @property
    def is_turn(self) -> bool:
        """Whether somebody said it in a conversation, or it was taken from what they said there."""
        return self.kind == "turn" or self.source.kind == "user" or "said_by" in self.metadata

    @property
    def said_at(self) -> float:
        """When it was said or seen, in seconds since 1970."""
        return self.created_at if self.observed_at is None else self.observed_at

    @property
    def begins(self) -> float:
        """Since when it holds as far as is known, in seconds since 1970: since it was said, where nobody says more."""
        return self.said_at if self.valid_from is None else self.valid_from

    @property
    def last_said_at(self) -> float:
        """When it was said or last confirmed, in seconds since 1970."""
        return max(self.said_at, self.confirmed_at)


@dataclass(frozen=True, slots=True)
class Revision:
    """One change of a memory; a memory's revisions are numbered from 1, and none is ever changed or lost.

    at: seconds since 1970 (UTC). reason: what happened ("added", "feedback", "verified", ...). evidence: ids or texts
    of what spoke for the change. content_before: the content that was replaced; empty where the content stayed.
    uncertainty: after the change; None where an imported history does not say.
    """

    memory_id: str
    number: int
    at: float
    reason: str
    veracity_before: float
    veracity_after: float
    evidence: tuple[str, ...] = ()
    content_before: str = ""
    uncertainty: float | None = None

    def __post_init__(self) -> None:
        name = f"revision {self.number} of memory {self.memory_id!r}"
        _check_texts(name, memory_id=self.memory_id, reason=self.reason, content_before=self.content_before)
        _check_texts(f"{name}: evidence", **{str(place): text for place, text in enumerate(self.evidence)})
        _check_times(name, at=self.at)
        _check_shares(name, veracity_before=self.veracity_before, veracity_after=self.veracity_after)
        if self.uncertainty is not None:
            _check_shares(name, uncertainty=self.uncertainty)
        if type(self.number) is not int or self.number < 1:
            raise InvalidRequestError(f"{name}: numbers of revisions count from 1")


def as_it_was(memory: Memory, history: Sequence[Revision], at: float) -> Memory | None:
    """A memory with the content and veracity that it had at a time (seconds since 1970); None if it did not hold then.

    Before it was written down it is as it was at first.
    """
    if not memory.holds_at(at):
        return None
    later = [revision for revision in history if revision.at > at]
    content = next((revision.content_before for revision in later if revision.content_before), memory.content)
    return replace(memory, content=content, veracity=later[0].veracity_before if later else memory.veracity)
