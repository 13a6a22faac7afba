"""Memories checked again by trusted passages, while nobody asks for them: on demand, or in a thread of its own."""

import heapq
import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from ewe.errors import ConfigError, InvalidRequestError
from ewe.longterm.evidence import Clock, EvidenceBook
from ewe.longterm.records import Memory, Revision, Scope
from ewe.longterm.store import MemoryStore
from ewe.retrieval.veracity import half_life_decay
from ewe.types.protocols import Retriever

_log = logging.getLogger(__name__)
_PASSAGES = 5
_MOST_FAILURES = 3  # In a row: then nobody is there who could check anything.
_SECONDS_PER_DAY = 86400.0
_HALF_LIFE_DAYS = 30.0  # after which time without a change a memory is half overdue
_HALF_USE = 5.0  # the number of recalls that counts half


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """How urgent another look at a memory is; least: the priority under which nothing is reviewed."""

    least: float = 0.1

    def priority(self, memory: Memory, now: float) -> float:
        """overdue (1 + (1 - v) + use) / 3, in [0, 1]; now: unix seconds.

        overdue = 1 - 2^(-days since the last change / 30), use = recalls / (recalls + 5): our form, as verimem-b.txt
        gives none. Age multiplies, so that a memory which stays low after a check is not checked again at once.
        """
        overdue = 1.0 - half_life_decay((now - memory.updated_at) / _SECONDS_PER_DAY, _HALF_LIFE_DAYS)
        return overdue * self._at_most(memory)

    def due_at(self, memory: Memory) -> float:
        """When a memory's priority reaches `least`, in unix seconds, if nothing changes; infinite if it never does."""
        overdue = self.least / self._at_most(memory)
        if overdue >= 1.0:
            return math.inf
        return memory.updated_at - _HALF_LIFE_DAYS * math.log2(1.0 - overdue) * _SECONDS_PER_DAY

    def plan(self, memories: Iterable[Memory], now: float, budget: int) -> list[Memory]:
        """The at most `budget` most urgent memories; equal ones by scope and id. Raises InvalidRequestError below 0."""
        if budget < 0:
            raise InvalidRequestError(f"budget must be 0 or more memories, got {budget}")
        rated = ((-self.priority(one, now), one.scope.user, one.scope.agent, one.id, one) for one in memories)
        chosen = heapq.nsmallest(budget, rated, key=lambda item: item[:4])
        return [memory for negative, *_, memory in chosen if -negative >= self.least]

    def _at_most(self, memory: Memory) -> float:
        """The priority of a memory that is wholly overdue."""
        use = memory.recall_count / (memory.recall_count + _HALF_USE)
        return (1.0 + (1.0 - memory.veracity) + use) / 3.0


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A memory that was due, as it was before, with its revision.

    error: why it could not be checked; revision is None then, and where the memory changed or went in the meantime.
    """

    memory: Memory
    revision: Revision | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Outlook:
    """How many memories there are, and when the first of them is due: unix seconds, infinite if none ever is."""

    memories: int
    next_due_at: float


class Reviewer:
    """Checks the memories that need it most (verimem-b.txt). Raises ConfigError without trusted passages or a judge."""

    def __init__(
        self, store: MemoryStore, evidence: EvidenceBook, trusted: Retriever | None, policy: ReviewPolicy, clock: Clock
    ) -> None:
        if trusted is None:
            raise ConfigError("a review needs passages to check memories by: give the memory service `trusted`")
        if not evidence.can_weigh:
            raise ConfigError("a review needs a judge to read passages: give the memory service one")
        self._store, self._evidence, self._trusted = store, evidence, trusted
        self._policy, self._clock = policy, clock
        self._failed: set[tuple[Scope, str]] = set()

    def plan(self, budget: int, scopes: Sequence[Scope] | None = None) -> list[Memory]:
        """The at most `budget` most urgent memories (None: of all scopes); reads each memory once."""
        due = self._due(budget, scopes)
        if not due and self._failed:
            self._failed.clear()
            due = self._due(budget, scopes)
        return due

    def outlook(self, scopes: Sequence[Scope] | None = None) -> Outlook:
        """How many memories there are (None: in all scopes), and when the first of them is due."""
        due = [self._policy.due_at(memory) for memory in self._store.scan(scopes)]
        return Outlook(len(due), min(due, default=math.inf))

    def check(self, memory: Memory) -> Revision | None:
        """Weighs a memory by what trusted passages say of it; a revision even where nothing moved, so that its turn
        comes again after the others. Raises whatever retriever and judge raise.
        """
        [hits] = self._trusted.retrieve([memory.content], _PASSAGES)
        return self._evidence.weigh(memory, [hit.passage for hit in hits], "reviewed", always=True)

    def round(self, memories: Sequence[Memory]) -> Iterator[Reviewed]:
        """Checks these memories one after the other, each as it is asked for; ends early if three in a row fail."""
        in_a_row = 0
        for memory in memories:
            one = self._reviewed(memory)
            yield one
            in_a_row = in_a_row + 1 if one.error else 0
            if in_a_row == _MOST_FAILURES:
                return

    def _due(self, budget: int, scopes: Sequence[Scope] | None) -> list[Memory]:
        memories = (one for one in self._store.scan(scopes) if (one.scope, one.id) not in self._failed)
        return self._policy.plan(memories, self._clock(), budget)

    def _reviewed(self, memory: Memory) -> Reviewed:
        try:
            return Reviewed(memory, self.check(memory))
        except Exception as error:  # whatever the user's retriever or judge raises
            _log.warning("a memory could not be reviewed", exc_info=error)
            self._failed.add((memory.scope, memory.id))
            return Reviewed(memory, None, str(error) or type(error).__name__)


@dataclass(frozen=True, slots=True)
class ReviewStatus:
    """What a thread of reviews has done since it was started: rounds, memories checked, moved and failed."""

    rounds: int = 0
    reviewed: int = 0
    moved: int = 0
    failed: int = 0
    last_error: str = ""

    def with_one(self, one: Reviewed) -> Self:
        """The status after one more memory."""
        revision = one.revision
        moved = revision is not None and revision.veracity_after != revision.veracity_before
        return replace(
            self,
            reviewed=self.reviewed + (revision is not None),
            moved=self.moved + moved,
            failed=self.failed + bool(one.error),
            last_error=one.error or self.last_error,
        )


class BackgroundReviews:
    """A thread that reviews at most `budget` memories, then rests `every_s` seconds, until it is stopped.

    scopes: None for all. on_review: called in that thread with every memory checked. What goes wrong is logged and
    counted, and the next round comes all the same. `stop` (or leaving the context) waits for the memory that is being
    checked, no longer. Raises ConfigError for a budget or a time that is not positive.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        budget: int = 20,
        every_s: float = 3600.0,
        scopes: Sequence[Scope] | None = None,
        on_review: Callable[[Reviewed], None] = lambda one: None,
    ) -> None:
        if budget < 1 or not every_s > 0:
            raise ConfigError(f"reviews need a budget and a time above 0, got {budget} and {every_s:g} s")
        self._reviewer, self._budget, self._every_s, self._scopes = reviewer, budget, every_s, scopes
        self._on_review = on_review
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ewe-memory-reviews", daemon=True)
        self.status = ReviewStatus()

    def start(self) -> Self:
        """Begins the first round at once."""
        self._thread.start()
        return self

    def stop(self, timeout_s: float | None = None) -> bool:
        """Ends the reviews; false if the memory that is being checked takes longer than `timeout_s`."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._round()
            except Exception as error:  # a full disk, a store that was closed: the next round may fare better
                _log.exception("a round of reviews ended early")
                self.status = replace(self.status, last_error=str(error) or type(error).__name__)
            self.status = replace(self.status, rounds=self.status.rounds + 1)
            self._stopping.wait(self._every_s)

    def _round(self) -> None:
        for one in self._reviewer.round(self._reviewer.plan(self._budget, self._scopes)):
            self.status = self.status.with_one(one)
            self._on_review(one)
            if self._stopping.is_set():
                return
