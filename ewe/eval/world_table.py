"""The world table for people: a rich table, a Markdown table and a PNG plot.

Owns: the columns and how they are shown. Knows reports; runs nothing.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from ewe.eval.world_systems import Report

_COLUMNS = {
    "false_share": ("false facts", "{:.1%}"),
    "precision": ("precision", "{:.3f}"),
    "recall": ("recall@K", "{:.3f}"),
    "f1": ("F1@K", "{:.3f}"),
    "facts_stated": ("facts stated", "{:.0f}"),
    "false_facts": ("of them false", "{:.0f}"),
    "rewritten": ("rewritten", "{:.0f}"),
    "tokens_per_s": ("tokens/s", "{:.0f}"),
}


def rich_table(report: Report) -> Table:
    """For the terminal: the mean over the seeds, and the range where there are several."""
    table = Table(title=f"{report.people_per_seed} people x {len(report.seeds)} seeds, K = {report.k:g}")
    table.add_column("system")
    for title, _ in _COLUMNS.values():
        table.add_column(title, justify="right")
    for row in _rows(report):
        table.add_row(*row)
    return table


def markdown_table(report: Report) -> str:
    """The same as a Markdown table."""
    titles = ["system", *(title for title, _ in _COLUMNS.values())]
    lines = [titles, ["---", *["---:"] * len(_COLUMNS)], *_rows(report)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def as_json(report: Report) -> dict[str, Any]:
    """A JSON-ready copy of the report."""
    return asdict(report)


def save_plot(report: Report, path: Path) -> None:
    """Bars of the false share and of F1@K per system, with the range over the seeds; PNG by the file's ending."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(report.scores)[::-1]
    figure, axes = plt.subplots(1, 2, figsize=(11, 0.55 * len(names) + 1.6), sharey=True)
    for axis, column, title, color in (
        (axes[0], "false_share", "share of stated facts that are false", "#b3452c"),
        (axes[1], "f1", "F1@K", "#2c6fb3"),
    ):
        spreads = [report.spread(name, column) for name in names]
        means = [spread.mean for spread in spreads]
        errors = [
            [spread.mean - spread.least for spread in spreads],
            [spread.largest - spread.mean for spread in spreads],
        ]
        axis.barh(names, means, xerr=errors, color=color, alpha=0.85, capsize=3)
        axis.set_title(title)
        axis.set_xlim(left=0)
        axis.spines[["top", "right"]].set_visible(False)
        for position, mean in enumerate(means):
            axis.annotate(f" {mean:.3f}", (mean, position), xytext=(6, 7), textcoords="offset points", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _rows(report: Report) -> list[list[str]]:
    rows = []
    for name in report.scores:
        row = [name]
        for column, (_, form) in _COLUMNS.items():
            spread = report.spread(name, column)
            text = form.format(spread.mean)
            if len(report.seeds) > 1 and column in ("false_share", "f1"):
                text += f" ({form.format(spread.least)} to {form.format(spread.largest)})"
            row.append(text)
        rows.append(row)
    return rows
