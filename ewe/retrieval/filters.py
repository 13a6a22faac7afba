"""Which passages may be found at all: by source, date, address and veracity.

Owns: what a filter says and how a retriever that knows none is filtered. Knows `ewe.protocols` and `ewe.types`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ewe.errors import ConfigError
from ewe.protocols import Retriever
from ewe.retrieval.source import Keep
from ewe.types import Passage, ScoredPassage

_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?(?!\d)")
_DEEPER = 4


@dataclass(frozen=True, slots=True)
class PassageFilter:
    """True for passages that meet every condition that is set.

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


class Filtered:
    """Any retriever, its passages filtered after the search.

    It asks for more until `top_k` remain or the retriever has no more, four times as many each time. The retrievers of
    this package take a filter themselves (`keep`), which costs less where few passages meet it.
    """

    def __init__(self, retriever: Retriever, keep: Keep) -> None:
        self._retriever, self._keep = retriever, keep

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        """Per query, at most `top_k` passages that meet the filter, best first."""
        results: list[list[ScoredPassage]] = [[] for _ in queries]
        waiting, depth = list(range(len(queries))), top_k
        while waiting:
            depth *= _DEEPER
            found = self._retriever.retrieve([queries[index] for index in waiting], depth)
            unfinished = []
            for index, row in zip(waiting, found, strict=True):
                results[index] = [scored for scored in row if self._keep(scored.passage)][:top_k]
                if len(results[index]) < top_k and len(row) >= depth:
                    unfinished.append(index)
            waiting = unfinished
        return results


def _common(limit: str, date: str) -> tuple[str, str]:
    """Both cut to the shorter one's precision."""
    length = min(len(limit), len(date))
    return limit[:length], date[:length]
