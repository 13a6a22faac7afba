"""What sessions of long-term memory showed of each system: its figures, a table and a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import plots
from benchmarks.sessions import Tally

_SHOWN = (
    "none",
    "mma",
    "mma, judged",
    "mark",
    "verimem",
    "default",
    "verimem with a library",
    "default with a library",
)


@dataclass(slots=True)
class Figures:
    """What the worlds showed of one system."""

    rows: list[dict[str, float]] = field(default_factory=list)
    beliefs: list[np.ndarray] = field(default_factory=list)
    truths: list[np.ndarray] = field(default_factory=list)

    def add(self, tally: Tally) -> None:
        """Counts a world in."""
        total = sum(count for name, count in tally.answers.items() if name != "false_and_nobody_told")
        names = ("right", "right_with_warning", "false", "false_with_warning", "none", "false_and_nobody_told")
        beliefs, truths = np.array(tally.beliefs), np.array(tally.truths)
        after = list(tally.corrected.values()) or [0]
        self.beliefs.append(beliefs)
        self.truths.append(truths)
        self.rows.append(
            {
                **{name: tally.answers[name] / total for name in names},
                "auroc": auroc(beliefs, truths),
                "calibration_error": calibration_error(beliefs, truths),
                "wrong_after_correction_mean": float(np.mean(after)),
                "wrong_after_correction_most": float(max(after)),
            }
        )

    def summary(self) -> dict[str, float]:
        """Means over the worlds, and the most of all for what is a maximum."""
        return {
            key: float((max if key.endswith("most") else np.mean)([row[key] for row in self.rows]))
            for key in self.rows[0]
        }


def auroc(beliefs: np.ndarray, truths: np.ndarray) -> float:
    """The chance that a true memory is believed more than a false one, ties half; 1/2 without both kinds."""
    true, false = np.sort(beliefs[truths]), np.sort(beliefs[~truths])
    if not len(true) or not len(false):
        return 0.5
    below, upto = np.searchsorted(false, true, "left"), np.searchsorted(false, true, "right")
    return float((below + upto).sum() / (2 * len(true) * len(false)))


def calibration_error(beliefs: np.ndarray, truths: np.ndarray) -> float:
    """Mean distance between belief and share of true ones over ten bins, weighted by their sizes."""
    bins = np.minimum((beliefs * 10).astype(int), 9)
    gaps = [(bins == b).mean() * abs(beliefs[bins == b].mean() - truths[bins == b].mean()) for b in np.unique(bins)]
    return float(sum(gaps))


def plot(path: Path, table: Mapping[str, Figures]) -> None:
    """Answers as bars per system, and the share of true memories against what was believed of them."""
    with plots.canvas(path, (1, 2), (9, 3.4), width_ratios=(3, 2)) as (bars, curve):
        names = [name for name in _SHOWN if name in table][::-1]
        left = np.zeros(len(names))
        parts = {"right": "#3f8f5b", "right_with_warning": "#9fcaae", "none": "#d5d5d5"}
        for key, color in {**parts, "false_with_warning": "#e3aa9d", "false": "#b3452c"}.items():
            widths = np.array([table[name].summary()[key] for name in names])
            bars.barh(names, widths, left=left, label=key.replace("_", " "), color=color)
            left += widths
        bars.set(xlim=(0, 1), xlabel="share of all questions")
        bars.legend(loc="upper center", bbox_to_anchor=(0.4, -0.16), ncols=3, fontsize=7, frameon=False)
        curve.plot([0, 1], [0, 1], color="#aaaaaa", linewidth=0.8)
        for name, color in (
            ("mma, judged", "#d08a2c"),
            ("mark", "#777777"),
            ("verimem", "#2c6fb3"),
            ("default", "#3f8f5b"),
        ):
            beliefs, truths = np.concatenate(table[name].beliefs), np.concatenate(table[name].truths)
            bins = np.minimum((beliefs * 10).astype(int), 9)
            kept = [b for b in range(10) if (bins == b).sum() >= 20]
            means = [(beliefs[bins == b].mean(), truths[bins == b].mean()) for b in kept]
            curve.plot(*zip(*means, strict=True), marker="o", markersize=3, label=name, color=color)
        curve.set(xlabel="belief", ylabel="share of true memories")
        curve.legend(fontsize=7, frameon=False)


def markdown(table: Mapping[str, Figures]) -> str:
    """The figures as a table."""
    columns = ("right", "false", "false_with_warning", "none", "auroc", "calibration_error")
    lines = ["| system | " + " | ".join(columns) + " | wrong after correction, mean (most) |"]
    lines.append("| --- |" + " ---: |" * (len(columns) + 1))
    for name, figures in table.items():
        row = figures.summary()
        row["right"] += row["right_with_warning"]
        cells = [f"{row[key]:.3f}" for key in columns]
        cells.append(f"{row['wrong_after_correction_mean']:.2f} ({row['wrong_after_correction_most']:.0f})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
