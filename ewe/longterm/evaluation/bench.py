"""A benchmark of memory systems: what is played, what was found, and the table with its intervals."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ewe.evaluation.tables import Curves, Interval, save_bars, save_curves
from ewe.longterm.evaluation.abstention import RiskCoverage, risk_coverage
from ewe.longterm.evaluation.memory_systems import open_system
from ewe.longterm.evaluation.protocol import Answerer, MemorySystem
from ewe.verification.judges.protocol import Judge

AREA = "area"
"""The column of the area under the curve of risk over coverage, from the values `confidence` and `answered_right`."""
_AREA_DRAWS = 500


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
    images: the folder for pictures that are shown in place of what they show in words.
    """

    cases: int | None = None
    seed: int = 0
    data: Path | None = None
    images: Path | None = None


class Bench:
    """Items that every system plays: one table.

    columns: the table's, by the names of values, in words. answer_tokens: most of a model's answer. judge: of the
    systems' stores. reader: answers exactly where no model is named; None where there is none. parts: other fields of
    `StoreSystem`. simulated: whether the same templates write, judge and read what is played, so that figures compare
    systems with each other and say nothing of real conversations.
    """

    name: str
    columns: Mapping[str, str]
    items: Sequence[str]
    answer_tokens: int = 32
    judge: Judge | None = None
    reader: Answerer | None = None
    parts: Mapping[str, Any] = MappingProxyType({})
    simulated: bool = False

    @property
    def title(self) -> str:
        """What a table of it is called."""
        return f"{self.name} (simulation)" if self.simulated else self.name

    def play(self, system: MemorySystem, item: str) -> Finding:
        """Has a system, which has begun the item, remember its turns and answer its questions."""
        raise NotImplementedError

    def plot(self, findings: Sequence[Finding], path: Path) -> None:
        """Draws what was found into a PNG file: risk over coverage (the MMA paper, figure 6b), a line per system."""
        curves = {system: risk_curve(own) for system, own in by_system(findings).items()}
        lines = {system: (curve.coverage.tolist(), curve.risk.tolist()) for system, curve in curves.items()}
        save_curves([Curves("coverage", "risk", lines)], path)


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
    """A figure with two digits and the longer half of its interval."""
    return f"{figure.value:.2f} ±{max(figure.value - figure.low, figure.high - figure.value):.2f}"


def run(
    bench: Bench,
    systems: Sequence[str],
    answerer: Answerer,
    findings: Collection[Finding],
    on_finding: Callable[[Finding], None],
) -> None:
    """Plays what is not in `findings` yet; on_finding hears of each finding as it is there. Raises ConfigError."""
    done = {(one.system, one.item) for one in findings}
    for name in systems:
        missing = [item for item in bench.items if (name, item) not in done]
        if missing:
            with open_system(name, answerer, bench.judge, **bench.parts) as system:
                for item in missing:
                    system.begin(item)
                    on_finding(bench.play(system, item))


def summarise(bench: Bench, systems: Sequence[str], findings: Iterable[Finding]) -> list[Row]:
    """A row per system that has played: the mean over all numbers of a column."""
    bench_findings = [one for one in findings if one.bench == bench.name]
    rows = []
    for system in systems:
        own = [one for one in bench_findings if one.system == system]
        if own:
            rows.append(Row(system, len(own), {key: _figure(own, key) for key in bench.columns}))
    return rows


def risk_curve(findings: Sequence[Finding]) -> RiskCoverage:
    """The curve of all answers whose confidence and rightness the findings hold."""
    pairs = _pairs(findings)
    return risk_coverage([pair[0] for pair in pairs], [bool(pair[1]) for pair in pairs])


def by_system(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The findings of each system, in the order in which systems first come."""
    groups: dict[str, list[Finding]] = {}
    for one in findings:
        groups.setdefault(one.system, []).append(one)
    return groups


def save_plot(rows: Sequence[Row], columns: Mapping[str, str], path: Path) -> None:
    """Bars of some columns for the systems that have them; PNG by the file's ending."""
    full = [row for row in rows if all(row.figures[key] is not None for key in columns)]
    panels = {title: [row.figures[key] for row in full] for key, title in columns.items()}
    save_bars([row.system for row in full], panels, path)  # type: ignore[arg-type]


def _figure(findings: Sequence[Finding], key: str) -> Interval | None:
    if key == AREA:
        return _area(findings)
    numbers = [number for one in findings for number in one.values.get(key, ())]
    return Interval.of_mean(numbers) if numbers else None


def _area(findings: Sequence[Finding]) -> Interval | None:
    """The area under the curve of risk over coverage; its interval by drawing answers again."""
    pairs = np.array(_pairs(findings))
    if not len(pairs):
        return None
    return Interval.of_figure(pairs, _area_of, _AREA_DRAWS)


def _area_of(pairs: NDArray[np.float64]) -> float:
    return risk_coverage(pairs[:, 0].tolist(), pairs[:, 1].astype(bool).tolist()).area


def _pairs(findings: Sequence[Finding]) -> list[tuple[float, float]]:
    """Confidence and rightness of every answer."""
    key, right = "confidence", "answered_right"
    return [pair for one in findings for pair in zip(one.values.get(key, ()), one.values.get(right, ()), strict=True)]
