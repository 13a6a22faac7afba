"""Where retrievers read passages from, by row, and which of them may be found at all."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ewe.config import FilterConfig
from ewe.errors import DatastoreError
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


def check_top_k(top_k: int) -> None:
    """Raises ValueError for a search that asks for nothing."""
    if top_k < 1:
        raise ValueError(f"top_k must be at least 1, got {top_k}")


def searched_text(passage: Passage) -> str:
    """What indexes hold of a passage: title and text, one line each."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text


def describe(retriever: object) -> str:
    """What a retriever says it is; else the name of its class."""
    return str(getattr(retriever, "description", type(retriever).__name__))


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
            present, _ = next(self._source.scan(rowid - 1), (None, None))
            if present == rowid:
                raise
            return None


def tags(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Metadata as "key=value": every text, number and truth value (as JSON), alone or in a list."""
    for key, value in metadata.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str | int | float):
                yield f"{key}={item if isinstance(item, str) else json.dumps(item)}"


def required_tags(filters: FilterConfig) -> list[list[str]]:
    """The tags that `filters.where` asks for: of each group a passage needs one."""
    return [[f"{key}={value}" for value in values] for key, values in filters.where.items()]


_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?(?!\d)")


def passes(filters: FilterConfig, passage: Passage) -> bool:
    """Whether a passage meets every condition that is set; a year or a month stands for all of its days."""
    return (
        (not filters.sources or passage.source in filters.sources)
        and passage.source not in filters.without
        and passage.url.startswith(filters.url_prefix)
        and passage.veracity >= filters.min_veracity
        and _in_time(passage.date, filters.since, filters.until)
        and _has_tags(passage, required_tags(filters))
    )


def day_range(date: str) -> tuple[int, int]:
    """The first and the last day, as the number YYYYMMDD, that an ISO date, month or year may mean.

    Months and years may begin and end on days that no calendar has. Without a date: a range beyond every limit.
    """
    match = _DATE.match(date)
    if match is None:
        return 10**8, -1
    digits = match[0].replace("-", "")
    return int(digits.ljust(8, "0")), int(digits.ljust(8, "9"))


def _has_tags(passage: Passage, required: Sequence[Sequence[str]]) -> bool:
    own = set(tags(passage.metadata)) if required else set()
    return all(not own.isdisjoint(group) for group in required)


def _in_time(date: str, since: str, until: str) -> bool:
    first, last = day_range(date)
    return (not since or last >= day_range(since)[0]) and (not until or first <= day_range(until)[1])
