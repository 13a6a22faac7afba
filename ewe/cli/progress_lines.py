"""How far a long run is: a bar in a terminal, a line every few seconds where output goes elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ewe.cli.terminal import progress_bar

_EVERY_S = 5.0
Clock = Callable[[], float]


class Advance(Protocol):
    """Counts a step of a run."""

    def __call__(self, doing: str, seconds: float | None = None) -> None:
        """doing: what the step belongs to; seconds: how long it took, where that is known."""


class Pace:
    """How fast a run is, of which `done` of `total` steps were there before; clock: in seconds."""

    def __init__(self, total: int, done: int = 0, clock: Clock = time.monotonic) -> None:
        self._total, self._done, self._clock = total, done, clock
        self._before = done
        self._begun = self._shown_at = clock()

    def count(self) -> None:
        """One step more is done."""
        self._done += 1

    def estimate(self, others: int, first_s: float | None = None) -> str:
        """After the first step: what so many others take, if each takes as long; empty later, and for a moment.

        first_s: the seconds of the first, where it is known better than by the time since the beginning.
        """
        seconds = (self._clock() - self._begun if first_s is None else first_s) * others
        if self._done != self._before + 1 or seconds < _EVERY_S:
            return ""
        return f"about {duration(seconds)} for {others} more, if they take as long as the first"

    def line(self, what: str) -> str:
        """Where the run is; empty if that was told less than five seconds ago."""
        now = self._clock()
        if now - self._shown_at < _EVERY_S:
            return ""
        self._shown_at = now
        left = (now - self._begun) / (self._done - self._before) * (self._total - self._done)
        return f"{what}: {self._done} of {self._total}, about {duration(left)} left"


@contextmanager
def counted_progress(what: str, total: int, done: int = 0, others: int = 0) -> Iterator[Advance]:
    """A function that counts a step, and is told what it belongs to and, where that is known, its seconds.

    others: for how many steps after the first one its time is an estimate, which is told.
    """
    pace = Pace(total, done)
    with progress_bar() as bar:
        task = bar.add_task(what, total=total, completed=done)

        def advance(doing: str, seconds: float | None = None) -> None:
            pace.count()
            bar.update(task, advance=1, description=doing)
            line = pace.estimate(others, seconds) or (pace.line(doing) if bar.disable else "")
            if line:
                bar.console.print(f"ewe: {line}", markup=False, highlight=False, soft_wrap=True)

        yield advance


def duration(seconds: float) -> str:
    """ "40 s", "3 min" or "2.5 h"; at least a second."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
