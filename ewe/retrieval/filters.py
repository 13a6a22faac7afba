"""Which passages may be found at all: by source, date, address and veracity.

A year or a month stands for all of its days.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ewe.errors import ConfigError
from ewe.types import Passage

_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?(?!\d)")


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


def _common(limit: str, date: str) -> tuple[str, str]:
    """Both cut to the shorter one's precision."""
    length = min(len(limit), len(date))
    return limit[:length], date[:length]
