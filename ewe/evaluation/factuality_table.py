"""The table of a factuality evaluation for people: for the terminal, in Markdown, and drawn."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ewe.evaluation import tables
from ewe.evaluation.factuality_report import Report, Row
from ewe.evaluation.tables import FittingTable, Interval

_F1, _REFUTED = "F1@K", "claims refuted"


def rich_table(report: Report) -> FittingTable:
    """For the terminal."""
    titles, rows = _cells(report)
    return tables.rich_table(titles, rows, _caption(report))


def markdown_table(report: Report) -> str:
    """The same in Markdown, with what a reader must know."""
    return "\n\n".join((_caption(report), tables.markdown_table(*_cells(report)), " ".join(report.notes)))


def save_plot(report: Report, path: Path) -> None:
    """Bars of F1@K and of the share refuted; lines of the scores over the axis of a sweep. PNG by the file's ending."""
    graded = [row for row in report.rows if row.f1 and row.precision and row.recall and row.refuted]
    if not report.axis:
        panels = {_F1: [row.f1 for row in graded if row.f1], _REFUTED: [row.refuted for row in graded if row.refuted]}
        tables.save_bars([row.system for row in graded], panels, path)
        return
    names = dict.fromkeys(row.series for row in graded)
    scores: dict[str, Callable[[Row], Interval | None]]
    scores = {"precision": lambda row: row.precision, "recall@K": lambda row: row.recall, _F1: lambda row: row.f1}
    lines = {
        title: {
            name: {row.x: value for row in graded if row.series == name and (value := score(row)) is not None}
            for name in names
        }
        for title, score in scores.items()
    }
    tables.save_lines(report.axis, lines, path)


def _caption(report: Report) -> str:
    k = f"K = {report.k:g}" + ("" if report.k_is_fixed else ", the median number of claims")
    against = f"; differences in F1 and wins against {report.baseline}" if len(report.rows) > 1 else ""
    return f"{report.name}: {report.prompts} prompts, {k}; 95% intervals by bootstrap{against}"


def _cells(report: Report) -> tuple[list[str], list[list[str]]]:
    """Titles and rows, without the columns that nothing stands in."""
    columns: dict[str, Callable[[Row], str]] = {
        _F1: lambda row: _interval(row.f1),
        "difference": lambda row: _interval(row.difference, "+"),
        "precision": lambda row: _interval(row.precision, bounds=False),
        "recall@K": lambda row: _interval(row.recall, bounds=False),
        _at(report.curve_ks): lambda row: " / ".join(f"{100 * one.value:.1f}" for one in row.curve),
        _REFUTED: lambda row: _interval(row.refuted),
        "off subject": lambda row: _interval(row.off_subject, bounds=False),
        "repeated": lambda row: _interval(row.repeated, bounds=False),
        "copied": lambda row: f"{100 * row.copied:.1f}" if any(one.copied for one in report.rows) else "",
        "win rate": lambda row: _interval(row.win_rate),
        "claims": lambda row: str(row.claims),
        "refusals": lambda row: str(row.refusals or ""),
        "retrievals": lambda row: f"{row.retrievals:.1f}",
        "checks": lambda row: f"{row.verifications:.1f}",
        "rewrites": lambda row: f"{row.rewrites:.1f}",
        "passes": lambda row: f"{row.passes:.0f}",
        "tokens/s": lambda row: f"{row.tokens_per_s:.0f}",
        "tokens per supported claim": lambda row: _number(row.tokens_per_claim),
        "seconds per supported claim": lambda row: _number(row.seconds_per_claim, 2),
        "paper F1": lambda row: _number(row.paper[0] if row.paper else None, 1),
        "paper win rate": lambda row: _number(row.paper[1] if row.paper else None, 1),
    }
    shown = {title: [cell(row) for row in report.rows] for title, cell in columns.items()}
    kept = {title: cells for title, cells in shown.items() if any(cells)}
    rows = [list(line) for line in zip([row.system for row in report.rows], *kept.values(), strict=True)]
    return [report.axis or "system", *kept], rows


def _at(ks: Sequence[float]) -> str:
    return f"F1 at K = {', '.join(f'{k:g}' for k in ks)}"


def _interval(value: Interval | None, sign: str = "", bounds: bool = True) -> str:
    """In percent, as the paper has it."""
    if value is None:
        return ""
    low, high = (f"{100 * end:{sign}.1f}" for end in (value.low, value.high))
    return f"{100 * value.value:{sign}.1f}" + (f" ({low} to {high})" if bounds else "")


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:.{digits}f}"
