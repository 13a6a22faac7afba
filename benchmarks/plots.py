"""Pictures of what a benchmark found, drawn when it ends or later from the JSON document it left.

python -m benchmarks.plots benchmarks/results/attention-cuda.json --plot attention.png
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Document = Mapping[str, Any]
# From a place (a number on an axis, or a name beside a bar) to a figure.
Points = Mapping[float, float] | Mapping[str, float]

COLORS = ("#2c6fb3", "#b3452c", "#3f8f5b", "#d08a2c", "#777777", "#7b5aa6", "#2aa6a0", "#c2619b")
_ENDINGS = (".png", ".svg", ".pdf")
_PANEL_WIDTH = 5.2
_MOST_IN_A_ROW = 3
# More places than this are told by powers of two.
_MOST_TICKS = 6
_POWERS = [2**power for power in range(32)]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes. Places that are numbers make lines over a logarithmic axis, places that are names make bars.

    title: what is seen, in plain words. places, values: labels of the two axes, with units. series: points by the name
    in the legend; a single one has no legend. limit: a value to hold the others against, and what it is. log_values:
    whether values span so much that their axis is logarithmic, too.
    """

    title: str
    places: str
    values: str
    series: Mapping[str, Points]
    limit: tuple[float, str] | None = None
    log_values: bool = False


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds --plot FILE, which is refused before the benchmark runs if it could not be written after it."""
    parser.add_argument("--plot", type=plot_file, metavar="FILE", help="draw the figures (PNG, SVG or PDF)")


def plot_file(name: str) -> Path:
    """The file to draw to; raises argparse.ArgumentTypeError for an unknown ending or without matplotlib."""
    path = Path(name)
    if path.suffix.lower() not in _ENDINGS:
        raise argparse.ArgumentTypeError(f"{name} must end in {', '.join(_ENDINGS)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("plots need matplotlib: install it with pip install 'ewe-engine[plots]'")
    return path


def found(figures: Mapping[str, float], pattern: str) -> dict[str, float]:
    """The figures whose whole name matches a regular expression, by what its only group holds."""
    matches = ((re.fullmatch(pattern, name), value) for name, value in figures.items())
    return {match[1]: value for match, value in matches if match}


def by_number(points: Mapping[str, float]) -> dict[float, float]:
    """Points whose places are written as numbers, in order."""
    return dict(sorted((float(place), value) for place, value in points.items()))


def draw(path: Path | None, panels: Callable[[Document], Sequence[Panel]], document: Document) -> None:
    """Draws a document's panels, those without points left out; nothing where no file is named or nothing is left."""
    if path is None:
        return
    seen = [panel for panel in panels(document) if any(panel.series.values())]
    if not seen:
        print(f"-- nothing to draw: {path} is not written", flush=True)
        return
    rows = -(-len(seen) // _MOST_IN_A_ROW)
    columns = -(-len(seen) // rows)
    heights = [_height(panel) for panel in seen]
    with canvas(path, (rows, columns), (_PANEL_WIDTH * columns, rows * max(heights))) as axes:
        for axis, panel in zip(axes, seen, strict=False):
            _draw_panel(axis, panel)
        for axis in axes[len(seen) :]:
            axis.set_visible(False)
        # Below everything, where no title gets in its way.
        axes[0].figure.supxlabel(_caption(document), fontsize=7, color="#555555")


@contextmanager
def canvas(path: Path, grid: tuple[int, int], inches: tuple[float, float], **options: Any) -> Iterator[list[Any]]:
    """matplotlib axes (rows by columns) to draw on, written to `path` at the end; options go to `plt.subplots`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(*grid, figsize=inches, squeeze=False, layout="constrained", **options)
    try:
        for axis in axes.flat:
            axis.spines[["top", "right"]].set_visible(False)
            axis.tick_params(labelsize=8)
        yield list(axes.flat)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    finally:
        plt.close(figure)


def _height(panel: Panel) -> float:
    """Inches that a panel wants: bars need room for each of them."""
    if not _has_bars(panel):
        return 3.6
    bars = sum(len(points) for points in panel.series.values())
    return max(2.4, 1.5 + 0.22 * bars + 0.12 * len(_names(panel)))


def _has_bars(panel: Panel) -> bool:
    return any(isinstance(place, str) for points in panel.series.values() for place in points)


def _names(panel: Panel) -> list[Any]:
    """All places in the order in which they first come."""
    return list(dict.fromkeys(place for points in panel.series.values() for place in points))


def _draw_panel(axis: Any, panel: Panel) -> None:
    (_bars if _has_bars(panel) else _lines)(axis, panel)
    axis.set_title(textwrap.fill(panel.title, 54), fontsize=9.5)
    for label, width in ((axis.xaxis.label, 56), (axis.yaxis.label, 38)):
        label.set(text=textwrap.fill(label.get_text(), width), fontsize=8.5)
    if len(panel.series) > 1 or panel.limit is not None:
        from matplotlib.transforms import offset_copy

        below = offset_copy(axis.transAxes, axis.figure, y=-36, units="points")
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below, "ncols": 2}
        axis.legend(fontsize=7.5, frameon=False, **place)


def _lines(axis: Any, panel: Panel) -> None:
    for color, (name, points) in zip(COLORS, panel.series.items(), strict=False):
        axis.plot(list(points), list(points.values()), marker="o", markersize=4, color=color, label=name)
    axis.set_xscale("symlog" if 0 in _names(panel) else "log", base=2)
    places = sorted(_names(panel))
    ticks = places if len(places) <= _MOST_TICKS else [place for place in _POWERS if places[0] <= place <= places[-1]]
    axis.set_xticks(ticks, [f"{tick:,.10g}" for tick in ticks])
    axis.minorticks_off()
    axis.set(xlabel=panel.places, ylabel=panel.values)
    axis.grid(axis="y", color="#e4e4e4", linewidth=0.7)
    if panel.limit is not None:
        axis.axhline(panel.limit[0], color="#222222", linewidth=1, linestyle="--", label=panel.limit[1])
    if panel.log_values:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:,.10g}")
        axis.yaxis.set_minor_formatter("")
    else:
        highest = [max(points.values()) for points in panel.series.values() if points]
        axis.set_ylim(0, 1.07 * max(*highest, panel.limit[0] if panel.limit else 0.0))


def _bars(axis: Any, panel: Panel) -> None:
    names = _names(panel)
    # Who has a bar at a place; they stand around its middle.
    there = {place: [name for name, points in panel.series.items() if place in points] for place in names}
    thickness = (0.8 if len(names) > 2 else 0.5) / max(map(len, there.values()))
    for color, (name, points) in zip(COLORS, panel.series.items(), strict=False):
        heights = [
            names.index(place) + thickness * (there[place].index(name) - (len(there[place]) - 1) / 2)
            for place in points
        ]
        bars = axis.barh(heights, list(points.values()), 0.92 * thickness, color=color, label=name)
        axis.bar_label(bars, map(_short, points.values()), fontsize=7, padding=2)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)  # the first at the top
    axis.margins(x=0.14)
    axis.set(xlabel=panel.values, ylabel=panel.places)
    axis.locator_params(axis="x", nbins=6)
    if panel.log_values:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:,.10g}")
        axis.xaxis.set_minor_formatter("")
    if panel.limit is not None:
        axis.axvline(panel.limit[0], color="#222222", linewidth=1, linestyle="--", label=panel.limit[1])


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _caption(document: Document) -> str:
    settings = document["settings"]
    shape = [str(settings[key]) for key in ("model", "shape", "dtype") if key in settings]
    parts = [document["benchmark"], *shape, document["device"], f"commit {document['commit']}"]
    return ", ".join(parts) + (" (a smoke run: sizes too small to mean anything)" if document["smoke"] else "")


def main() -> None:
    """Draws the document of an earlier run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=Path, help="what --out kept, or a file in benchmarks/results")
    parser.add_argument("--plot", type=plot_file, required=True, metavar="FILE", help="PNG, SVG or PDF")
    arguments = parser.parse_args()
    document = json.loads(arguments.document.read_text())
    benchmark = importlib.import_module(f"benchmarks.{Path(document['benchmark']).name}")
    if not hasattr(benchmark, "panels"):
        parser.error(f"{document['benchmark']} draws no panels")
    draw(arguments.plot, benchmark.panels, document)


if __name__ == "__main__":
    main()
