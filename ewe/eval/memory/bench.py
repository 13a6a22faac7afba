"""A benchmark of memory systems: what is played, what was found, and the table with its intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ewe.eval.intervals import Interval
from ewe.eval.memory.systems import Answerer, MemorySystem, open_system
from ewe.eval.tables import save_bars
from ewe.verification.judges.protocol import Judge


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one item under one system.

    values: figures by column, as lists: one number per question that the column counts, none where it counts none.
    replies: what was said, to read.
    """

    bench: str
    system: str
    item: str
    values: Mapping[str, Sequence[float]]
    replies: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Setup:
    """What `open_benches` of a bench's module is told.

    cases: how many, None for the bench's own number; seed: of what is generated or drawn; data: where public data is;
    images: whether pictures are shown in place of what they show in words.
    """

    cases: int | None = None
    seed: int = 0
    data: Path | None = None
    images: bool = False


class Bench(Protocol):
    """Items that every system plays: one table.

    columns: the table's, by the names of values, in words. judge: of the systems' stores. reader: answers exactly
    where no model is named; None where there is none. parts: other fields of `StoreSystem`.
    """

    name: str
    items: Sequence[str]
    columns: Mapping[str, str]
    judge: Judge | None
    reader: Answerer | None
    parts: Mapping[str, Any]

    def play(self, system: MemorySystem, item: str) -> Finding:
        """Has a system remember an item's turns and answer its questions; `system.begin` comes first."""
        ...

    def plot(self, findings: Sequence[Finding], path: Path) -> None:
        """Draws what was found into a PNG file."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """One system: how many items, and its figures with 95% intervals; None where a column counted nothing."""

    system: str
    items: int
    figures: Mapping[str, Interval | None] = field(default_factory=dict)

    def cells(self) -> list[str]:
        """As a table shows them."""
        return [self.system, str(self.items), *("-" if one is None else shown(one) for one in self.figures.values())]


def shown(figure: Interval) -> str:
    """A figure with two digits and its interval."""
    return f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f})"


def run(
    bench: Bench,
    systems: Sequence[str],
    answerer: Answerer,
    found: Collection[Finding],
    on_finding: Callable[[Finding], None],
) -> None:
    """Plays what is not in `found` yet; on_finding hears of each finding as it is there. Raises ConfigError."""
    done = {(one.system, one.item) for one in found}
    for name in systems:
        missing = [item for item in bench.items if (name, item) not in done]
        if missing:
            with open_system(name, answerer, bench.judge, **bench.parts) as system:
                for item in missing:
                    on_finding(bench.play(system, item))


def summarise(bench: Bench, systems: Sequence[str], findings: Iterable[Finding]) -> list[Row]:
    """A row per system that has played: the mean over all numbers of a column."""
    all_found = [one for one in findings if one.bench == bench.name]
    rows = []
    for system in systems:
        own = [one for one in all_found if one.system == system]
        if own:
            rows.append(Row(system, len(own), {key: _mean(own, key) for key in bench.columns}))
    return rows


def save_plot(rows: Sequence[Row], columns: Mapping[str, str], path: Path) -> None:
    """Bars of some columns for the systems that have them; PNG by the file's ending."""
    full = [row for row in rows if all(row.figures[key] is not None for key in columns)]
    panels = {title: [row.figures[key] for row in full] for key, title in columns.items()}
    save_bars([row.system for row in full], panels, path)  # type: ignore[arg-type]


def _mean(findings: Sequence[Finding], key: str) -> Interval | None:
    numbers = [number for one in findings for number in one.values.get(key, ())]
    return Interval.of_mean(numbers) if numbers else None
