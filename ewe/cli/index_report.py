"""How the building of a datastore is shown while it runs and told when it ended.

Owns: the progress bar, the lines of the report, the exit code. Knows `ewe.retrieval.ingest` by its shapes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ewe.retrieval.ingest import Progress as Reading
    from ewe.retrieval.ingest import Report


@contextmanager
def progress() -> Iterator[Callable[[Reading], None]]:
    """A function that shows how far reading is, on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def show(reading: Reading) -> None:
            description = f"{reading.passages} passages"
            bar.update(task, completed=reading.done, total=reading.total, description=description)

        yield show


def finish(report: Report, store: Path) -> None:
    """Says what came of it; exit code 1 if there were problems or no passage at all."""
    from ewe.cli.terminal import clean

    counts = report.counts
    skipped = f" ({report.skipped} were there already)" if report.skipped else ""
    print(f"{counts.passages} passages from {counts.files} files{skipped} are in {store}")
    for number, what in (
        (counts.copies, "copies left out"),
        (counts.empty, "documents without text"),
        (report.unknown, "files of unknown kind left out"),
    ):
        if number:
            print(f"{number} {what}")
    for problem in report.problems:
        say(clean(problem))
    if counts.problems > len(report.problems):
        say(f"{counts.problems - len(report.problems)} more problems; see 'ewe index info {store}'")
    if counts.problems or not counts.passages:
        raise typer.Exit(1)


def say(message: str) -> None:
    """One line for the user on standard error."""
    print(f"ewe: {message}", file=sys.stderr)
