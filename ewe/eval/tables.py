"""Figures with intervals, tables and plots that evaluations share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.table import Table

DRAWS = 10_000
_Z = 1.96
_AT_ONCE = 2_000_000  # numbers drawn at a time: 16 MB
_COLOURS = ("#2c6fb3", "#b3452c", "#3b8f5a", "#8457a6", "#a67c1f", "#555555")


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95% interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of_share(cls, count: int, total: int) -> Self:
        """`count` of `total` (at least 1), after Wilson (1927)."""
        value, spread = count / total, _Z**2 / total
        centre = (value + spread / 2) / (1 + spread)
        half = math.sqrt(spread * (value * (1 - value) + spread / 4)) / (1 + spread)
        return cls(value, max(0.0, centre - half), min(1.0, centre + half))

    @classmethod
    def of_mean(cls, values: Sequence[float]) -> Self:
        """The mean of at least one value, by 10,000 draws with replacement; the same at every call."""
        sample, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(0)
        rows = max(1, _AT_ONCE // len(sample))
        sizes = [min(rows, DRAWS - first) for first in range(0, DRAWS, rows)]
        means = np.concatenate([sample[rng.integers(0, len(sample), (size, len(sample)))].mean(1) for size in sizes])
        low, high = np.quantile(means, (0.025, 0.975))
        return cls(float(sample.mean()), float(low), float(high))

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


def rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Table:
    """For the terminal; the first column is text, the others are figures."""
    table = Table(title=caption)
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    return table


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def save_bars(names: Sequence[str], panels: Mapping[str, Sequence[Interval]], path: Path) -> None:
    """Horizontal bars with intervals, a panel per title, the first name on top; PNG by the file's ending."""
    figure, axes = _figure(len(panels), (1.5 + 5 * len(panels), 0.45 * len(names) + 1.4), sharey=True)
    for number, (axis, (title, values)) in enumerate(zip(axes, panels.items(), strict=True)):
        shown = values[::-1]
        means = [item.value for item in shown]
        axis.barh(names[::-1], means, xerr=_errors(shown), color=_COLOURS[number % 6], alpha=0.85, capsize=3)
        axis.set_xlim(left=0)
        axis.set_title(title)
    _save(figure, path)


def save_lines(xlabel: str, panels: Mapping[str, Mapping[str, Mapping[str, Interval]]], path: Path) -> None:
    """Lines with intervals: per panel and line the figure at each x, in that order; PNG by the file's ending."""
    figure, axes = _figure(len(panels), (1 + 4 * len(panels), 3.6), sharey=False)
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        for number, (name, points) in enumerate(lines.items()):
            values = list(points.values())
            means = [item.value for item in values]
            axis.errorbar(
                list(points), means, yerr=_errors(values), marker="o", capsize=3, label=name, color=_COLOURS[number % 6]
            )
        axis.set_title(title)
        axis.set_xlabel(xlabel)
        if any(lines):
            axis.legend(frameon=False)
    _save(figure, path)


@dataclass(frozen=True, slots=True)
class Curves:
    """A panel of curves without intervals: by name, places along x and y there."""

    xlabel: str
    ylabel: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]


def save_curves(panels: Sequence[Curves], path: Path) -> None:
    """Curves side by side; PNG by the file's ending."""
    figure, axes = _figure(len(panels), (5.5 * len(panels), 4.0), sharey=False)
    for axis, panel in zip(axes, panels, strict=True):
        for number, (name, (xs, ys)) in enumerate(panel.lines.items()):
            axis.plot(xs, ys, label=name, color=_COLOURS[number % 6], linestyle="-" if number < 6 else "--")
        axis.set_xlabel(panel.xlabel)
        axis.set_ylabel(panel.ylabel)
        axis.legend(frameon=False, fontsize=8)
    _save(figure, path)


def _errors(values: Sequence[Interval]) -> list[list[float]]:
    """How far the ends lie from the figure, never below 0 by rounding."""
    return [[max(0.0, item.value - item.low) for item in values], [max(0.0, item.high - item.value) for item in values]]


def _figure(panels: int, size: tuple[float, float], sharey: bool) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, panels, figsize=size, sharey=sharey, squeeze=False)
    return figure, list(axes[0])


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
