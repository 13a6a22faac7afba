"""Figures with intervals, tables and plots that evaluations share."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

DRAWS = 10_000
_Z = 1.96
_BORDER = 3  # columns of a terminal that a column of a table takes beside its text
_LEAST_TEXT, _ANY_WIDTH = 12, 100_000
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
        """The mean of at least one value, by 10,000 draws with replacement; the same at every call and in any order."""
        sample, rng = np.sort(np.asarray(values, dtype=np.float64)), np.random.default_rng(0)
        rows = max(1, _AT_ONCE // len(sample))
        sizes = [min(rows, DRAWS - first) for first in range(0, DRAWS, rows)]
        means = np.concatenate([sample[rng.integers(0, len(sample), (size, len(sample)))].mean(1) for size in sizes])
        low, high = np.quantile(means, (0.025, 0.975))
        return cls(float(sample.mean()), float(low), float(high))

    @classmethod
    def of_figure(cls, rows: NDArray[np.float64], figure: Callable[[NDArray[np.float64]], float], draws: int) -> Self:
        """A figure of at least one row, by drawing rows with replacement; the same at every call."""
        rng = np.random.default_rng(0)
        figures = [figure(rows[rng.integers(0, len(rows), len(rows))]) for _ in range(draws)]
        low, high = np.quantile(figures, (0.025, 0.975))
        return cls(figure(rows), float(low), float(high))

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True, slots=True)
class FittingTable:
    """For the terminal; the first column is text, the others are figures, which are never cut or broken.

    The first column and the titles wrap; where that is not enough, a row becomes a list of its figures.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = self._table([None] * len(self.titles))
        unbounded = options.update(max_width=_ANY_WIDTH)  # what is measured is never wider than it may be
        if console.measure(whole, options=unbounded).maximum <= options.max_width:
            yield whole
            return
        widths = [self._least_width(column) for column in range(1, len(self.titles))]
        left = options.max_width - sum(widths) - _BORDER * len(self.titles) - 1
        longest = max(cell_len(text) for text in (self.titles[0], *(row[0] for row in self.rows)))
        if left >= min(longest, _LEAST_TEXT):
            yield self._table([min(longest, left), *widths])
        else:
            yield from self._lists()

    def _table(self, widths: Sequence[int | None]) -> Table:
        """widths: of the columns; None leaves one as wide as what stands in it."""
        table = Table(title=self.caption)
        for number, (title, width) in enumerate(zip(self.titles, widths, strict=True)):
            table.add_column(title, justify="right" if number else "left", width=width, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def _least_width(self, column: int) -> int:
        """That of the longest figure, or of the longest word of the title."""
        return max(cell_len(text) for text in (*self.titles[column].split(), *(row[column] for row in self.rows)))

    def _lists(self) -> RenderResult:
        yield Text(self.caption, style="italic")
        for row in self.rows:
            yield Text(f"{self.titles[0]}: {row[0]}", style="bold")
            figures = Table.grid(padding=(0, 2))
            figures.add_column(overflow="fold")
            figures.add_column(justify="right", no_wrap=True)
            for title, figure in zip(self.titles[1:], row[1:], strict=True):
                figures.add_row(f"  {title}", figure)
            yield figures


def rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> FittingTable:
    """For the terminal; the first column is text, the others are figures."""
    return FittingTable(titles, rows, caption)


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
