"""Checks many texts and brings every result where it belongs: the screen, JSON lines, the page."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ewe.checked import CheckedText
from ewe.checking import check_text
from ewe.cli.check_view import print_checked, score_line
from ewe.cli.terminal import output_console
from ewe.cli.texts import NamedText, read_texts
from ewe.errors import InvalidRequestError
from ewe.eval.veriscore import ClaimCounts, count_claims, is_refusal, score_response, veriscore
from ewe.protocols import Verifier
from ewe.report import checked_data, write_check_page
from ewe.report.checked_text import wrong_calls
from ewe.types import Verdict

CLEAN, REFUTED, FAILED, INTERRUPTED = 0, 1, 2, 130


@dataclass(slots=True)
class CheckRun:
    """A verifier, and where the results of checking with it go.

    against: what it checks against, in words. k: K of VeriScore; None takes the median of the texts. expected, errors:
    what every claim should be, and the file that takes the claims that are not.
    """

    verifier: Verifier
    against: str
    k: float | None = None
    as_json: bool = False
    html: Path | None = None
    expected: Verdict | None = None
    errors: Path | None = None
    checked: dict[str, CheckedText] = field(default_factory=dict)
    counts: list[ClaimCounts] = field(default_factory=list)
    refuted: bool = False
    failed: bool = False

    def check(self, sources: Sequence[str], prompt: str, encoding: str | None) -> int:
        """Checks every text of every source; the exit status. One that cannot be read does not stop the others."""
        try:
            with self._progress() as progress:
                for source in sources:
                    self._check_source(source, prompt, encoding, progress)
        except KeyboardInterrupt as interrupt:
            _say(f"interrupted after {len(self.counts)} texts")
            raise typer.Exit(INTERRUPTED) from interrupt
        finally:
            self._finish()
        if self.failed:
            return FAILED
        return REFUTED if self.refuted else CLEAN

    def _check_source(self, source: str, prompt: str, encoding: str | None, progress: Progress) -> None:
        try:
            for text in read_texts(source, prompt, encoding):
                self._check_text(text, progress)
        except InvalidRequestError as error:
            self._fail(str(error))

    def _check_text(self, named: NamedText, progress: Progress) -> None:
        task = progress.add_task(named.name, total=None)
        try:
            checked = check_text(
                named.text,
                self.verifier,
                named.prompt,
                on_progress=lambda done, total: progress.update(task, completed=done, total=total),
            )
        except InvalidRequestError as error:
            self._fail(f"{named.name}: {error}")
            return
        finally:
            progress.remove_task(task)
        self._deliver(named.name, checked)

    def _deliver(self, name: str, checked: CheckedText) -> None:
        self.refuted |= checked.verdict is Verdict.REFUTED
        if checked.error:
            missing = f"{checked.num_failed} of {len(checked.sentences)} sentences"
            self._fail(f"{name}: {missing} could not be checked: {checked.error}")
        self.counts.append(count_claims(checked.claims, refused=is_refusal(checked.text)))
        if self.expected is not None and self.errors is not None:
            with self.errors.open("a", encoding="utf-8") as lines:
                lines.writelines(f"{json.dumps(pair)}\n" for pair in wrong_calls(checked, self.expected))
        if self.html is not None:
            self.checked[name if name not in self.checked else f"{name} ({len(self.counts)})"] = checked
        if self.as_json:
            scores = {**asdict(score_response(self.counts[-1], self.k)), "k": self.k} if self.k else None
            document = {"id": name, **checked_data(checked), "veriscore": scores}
            print(json.dumps(document, ensure_ascii=False), flush=True)
        else:
            print_checked(output_console(), name, checked)

    def _finish(self) -> None:
        """What all texts came to together."""
        if not self.counts:
            return
        score = veriscore(self.counts, self.k)
        if not self.as_json:
            output_console().print(score_line(score), markup=False)
        if self.html is not None:
            scores = {
                name: {**asdict(own), "k": score.k} for name, own in zip(self.checked, score.responses, strict=True)
            }
            write_check_page(self.html, self.checked, scores, self.against)

    def _progress(self) -> Progress:
        """A bar on standard error while a text is checked; it makes room for the report."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        hidden = not console.is_terminal
        return Progress(*columns, console=console, disable=hidden, transient=True, redirect_stdout=False)

    def _fail(self, message: str) -> None:
        self.failed = True
        _say(message)


def _say(message: str) -> None:
    print(f"ewe: {message}", file=sys.stderr)
