"""How the building of a datastore is shown while it runs and told when it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import DownloadColumn, TimeRemainingColumn

from ewe.cli.terminal import clean, progress_bar, say
from ewe.text.words import counted

if TYPE_CHECKING:
    from ewe.retrieval.ingest import Progress as Reading
    from ewe.retrieval.ingest import Report

_NAMED = 10  # paths that are left out; then a count


@contextmanager
def reading() -> Iterator[Callable[[Reading], None]]:
    """A function that shows how far the reading of files is."""
    with progress_bar(DownloadColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("reading", total=None)

        def show(done: Reading) -> None:
            bar.update(task, completed=done.done, total=done.total, description=f"{done.passages} passages")

        yield show


@contextmanager
def indexing(what: str = "indexing") -> Iterator[Callable[[int, int], None]]:
    """A function that shows how far the making of an index is, or what else is done, in passages."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def tell(report: Report, store: Path) -> None:
    """Prints what came of the files, the problems on standard error."""
    from ewe.retrieval.ingest.files import KINDS

    counts = report.counts
    were = "was" if report.skipped == 1 else "were"
    skipped = f" ({report.skipped:,} {were} there already)" if report.skipped else ""
    verb = "is" if counts.passages == 1 else "are"
    print(f"{counted(counts.passages, 'passage')} from {counted(counts.files, 'file')}{skipped} {verb} in {store}")
    if counts.duplicates:
        print(f"{counted(counts.duplicates, 'duplicate')} left out")
    if counts.empty:
        print(f"{counted(counts.empty, 'document')} without text")
    if report.unknown:
        files = counted(len(report.unknown), "file")
        print(clean(f"{files} of unknown kind left out: {_names(report.unknown)}; known are {', '.join(KINDS)}"))
    if report.links:
        links = counted(len(report.links), "link")
        print(clean(f"{links} to a folder or to nothing left out: {_names(report.links)}; name a folder to read it"))
    if report.gone:
        print(clean(_gone(report)))
    for problem in report.problems:
        say(clean(problem))
    if counts.problems > len(report.problems):
        say(f"{counted(counts.problems - len(report.problems), 'more problem')}; see 'ewe index info {store}'")


def _gone(report: Report) -> str:
    files, names = counted(len(report.gone), "file"), _names(report.gone)
    if report.pruned is None:
        return f"{files} of the datastore gone from there: {names}; --prune removes what came from them"
    return f"{counted(report.pruned, 'passage')} removed, of {files} gone from there: {names}"


def _names(paths: Sequence[str]) -> str:
    more = [f"{len(paths) - _NAMED:,} more"] if len(paths) > _NAMED else []
    return ", ".join([*paths[:_NAMED], *more])
