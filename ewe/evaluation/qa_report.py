"""What asking found: shares with intervals, tokens and times, per system."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from ewe.evaluation.tables import Interval, save_bars

_TITLES = (
    "system", "questions", "exact", "contained", "prompt tokens", "unit tokens", "first token, ms",
    "encoded after a change", "first token then, ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What one system said to one question; error: why it could not be asked."""

    question: str
    system: str
    text: str
    exact: bool
    contained: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """What one question costs (tokens, seconds to the first one), and again after one of its passages has changed."""

    question: str
    system: str
    prompt_tokens: int
    unit_tokens: int
    seconds: float
    changed_prompt_tokens: int
    changed_unit_tokens: int
    changed_seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """One system: shares of right answers, means of tokens, medians of seconds; None where nothing was timed."""

    system: str
    questions: int
    failed: int
    exact: Interval
    contained: Interval
    prompt_tokens: float | None = None
    unit_tokens: float | None = None
    seconds: float | None = None
    changed_tokens: float | None = None
    changed_seconds: float | None = None


def summarise(systems: Sequence[str], answers: Iterable[Answer], timings: Iterable[Timing]) -> list[Row]:
    """A row for every system that has answered."""
    given, timed = list(answers), list(timings)
    rows = []
    for system in systems:
        own = [answer for answer in given if answer.system == system]
        if own:
            rows.append(_row(system, own, [timing for timing in timed if timing.system == system]))
    return rows


def _row(system: str, answers: list[Answer], timings: list[Timing]) -> Row:
    total = len(answers)
    exact = Interval.of_share(sum(answer.exact for answer in answers), total)
    contained = Interval.of_share(sum(answer.contained for answer in answers), total)
    failed = sum(bool(answer.error) for answer in answers)
    row = Row(system, total, failed, exact, contained)
    if not timings:
        return row
    return replace(
        row,
        prompt_tokens=fmean(timing.prompt_tokens for timing in timings),
        unit_tokens=fmean(timing.unit_tokens for timing in timings),
        seconds=median(timing.seconds for timing in timings),
        changed_tokens=fmean(timing.changed_prompt_tokens + timing.changed_unit_tokens for timing in timings),
        changed_seconds=median(timing.changed_seconds for timing in timings),
    )


def table(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Titles and cells."""
    return _TITLES, [_cells(row) for row in rows]


def save_plot(rows: Sequence[Row], path: Path) -> None:
    """Bars of the share of contained answers per system with its interval; PNG by the file's ending."""
    contained = {"share of answers that contain a right one": [row.contained for row in rows]}
    save_bars([row.system for row in rows], contained, path)


def _cells(row: Row) -> list[str]:
    failed = f" ({row.failed} could not be asked)" if row.failed else ""
    numbers = (row.prompt_tokens, row.unit_tokens, _ms(row.seconds), row.changed_tokens, _ms(row.changed_seconds))
    shown = ["-" if number is None else f"{number:.0f}" for number in numbers]
    return [row.system, f"{row.questions}{failed}", str(row.exact), str(row.contained), *shown]


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds
