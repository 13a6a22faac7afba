"""Where retrievers read passages from, by row, and which of them may be found at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ewe.errors import ConfigError, DatastoreError
from ewe.retrieval.datastore import PassageList
from ewe.retrieval.store import PassageStore
from ewe.types import Passage, ScoredPassage

Progress = Callable[[int, int], None]  # (passages done, passages in all)
Keep = Callable[[Passage], bool]  # whether a passage may be found


@runtime_checkable
class PassageSource(Protocol):
    """Passages under row numbers that rise in the order of `scan`."""

    def __len__(self) -> int: ...

    def rows(self, rowids: Sequence[int]) -> list[Passage]:
        """The passages of these rows, in this order; raises DatastoreError for a row that is not there."""
        ...

    def scan(self, after_rowid: int = 0) -> Iterator[tuple[int, Passage]]:
        """(rowid, passage) of every row after `after_rowid`, in order."""
        ...


def as_source(passages: PassageSource | Iterable[Passage]) -> PassageSource:
    """`passages` itself if it is a source, else a source of them."""
    return passages if isinstance(passages, PassageSource) else PassageList(passages)


def snapshot(source: PassageSource) -> AbstractContextManager[None]:
    """A context in which `source` does not change."""
    return source.snapshot() if isinstance(source, PassageStore) else nullcontext()


def searched_text(passage: Passage) -> str:
    """What indexes hold of a passage: title and text, one line each."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


class Rows:
    """From positions in an index to passages.

    rowids: int64 [passages], the row of every position. keep: leaves out passages before anything is searched, so
    that `top_k` passages are found whatever share of the source is allowed.
    """

    def __init__(self, source: PassageSource, rowids: np.ndarray, keep: Keep | None) -> None:
        self._source, self._rowids = source, rowids
        self.allowed: np.ndarray | None = None  # bool [passages]
        if keep is not None:
            kept = [rowid for rowid, passage in source.scan() if keep(passage)]
            self.allowed = np.isin(rowids, np.array(kept, dtype=np.int64))

    def fetch(self, positions: np.ndarray, scores: np.ndarray) -> list[ScoredPassage]:
        """The passages at `positions` (integers [n]) with their scores (float32 [n]), in this order.

        Passages that were removed from the store since the index was made are left out.
        """
        rowids = [int(rowid) for rowid in self._rowids[positions]]
        values = [float(score) for score in scores]
        try:
            passages: Sequence[Passage | None] = self._source.rows(rowids)
        except DatastoreError:
            passages = [self._present(rowid) for rowid in rowids]
        return [ScoredPassage(passage, value) for passage, value in zip(passages, values, strict=True) if passage]

    def _present(self, rowid: int) -> Passage | None:
        """The passage of a row, or None if the row is gone; raises DatastoreError for a damaged one."""
        try:
            return self._source.rows([rowid])[0]
        except DatastoreError:
            found, _ = next(self._source.scan(rowid - 1), (None, None))
            if found == rowid:
                raise
            return None


_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?(?!\d)")


@dataclass(frozen=True, slots=True)
class PassageFilter:
    """True for passages that meet every condition that is set; a year or a month stands for all of its days.

    sources: only these (empty: any); without: not these. since and until: ISO dates (a year, a month or a day, both
    included; a passage without such a date meets neither). url_prefix: how its address begins. min_veracity: in [0, 1].
    Raises ConfigError for a date or a veracity that is none.
    """

    sources: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    url_prefix: str = ""
    min_veracity: float = 0.0

    def __post_init__(self) -> None:
        for name, date in (("since", self.since), ("until", self.until)):
            if date and not _DATE.fullmatch(date):
                raise ConfigError(f"filters.{name} must be a date such as 2024, 2024-05 or 2024-05-31, got {date!r}")
        if not 0.0 <= self.min_veracity <= 1.0:
            raise ConfigError(f"filters.min_veracity must lie in [0, 1], got {self.min_veracity}")

    def __call__(self, passage: Passage) -> bool:
        """Whether the passage may be found."""
        return (
            (not self.sources or passage.source in self.sources)
            and passage.source not in self.without
            and passage.url.startswith(self.url_prefix)
            and passage.veracity >= self.min_veracity
            and self._in_time(passage.date)
        )

    def _in_time(self, date: str) -> bool:
        if not self.since and not self.until:
            return True
        found = _DATE.match(date)
        if found is None:
            return False
        # ISO dates order as texts; a shorter one means all of its days.
        since, until = _common(self.since, found[0]), _common(self.until, found[0])
        return since[0] <= since[1] and (not self.until or until[1] <= until[0])


def _common(limit: str, date: str) -> tuple[str, str]:
    """Both cut to the shorter one's precision."""
    length = min(len(limit), len(date))
    return limit[:length], date[:length]
