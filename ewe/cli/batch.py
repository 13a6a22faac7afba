"""Runs many prompts and brings every result where it belongs: the screen, files, the trace.

Owns: the order of work and what is kept when a run is interrupted. Knows `LLM.generate` and `ewe.report`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ewe.cli.prompts import Prompt
from ewe.cli.results import ResultFile, record
from ewe.cli.terminal import answer_text, clean, output_console
from ewe.errors import InvalidRequestError
from ewe.report import write_page, write_trace
from ewe.sampling import SamplingParams
from ewe.types import Generation, GenerationStats, Passage

if TYPE_CHECKING:
    from ewe import LLM

INTERRUPTED = 130


@dataclass(slots=True)
class Batch:
    """Prompts, what is asked of them and where the answers go."""

    prompts: Sequence[Prompt]
    params: SamplingParams
    documents: Sequence[Passage] | None = None
    as_json: bool = False
    output: Path | None = None
    html: Path | None = None
    trace: Path | None = None
    finished: list[tuple[Prompt, Generation]] = field(default_factory=list)
    failed: int = 0
    cut_documents: set[str] = field(default_factory=set)

    def run(self, open_llm: Callable[[], LLM], at_once: int) -> bool:
        """Answers every prompt; False if some failed. What is finished is kept when the run is interrupted."""
        if self.output is None:
            self._answer(open_llm, self.prompts, at_once, None)
        else:
            with ResultFile(self.output, self.prompts, self.params.n) as results:
                if results.done:
                    _say(f"{results.done} of {len(self.prompts)} prompts are in {self.output} already")
                if results.done < len(self.prompts):
                    self._answer(open_llm, self.prompts[results.done :], at_once, results)
        return not self.failed

    def _answer(
        self, open_llm: Callable[[], LLM], prompts: Sequence[Prompt], at_once: int, results: ResultFile | None
    ) -> None:
        done = 0
        try:
            with open_llm() as llm, self._progress() as progress:
                task = progress.add_task("prompts", total=len(prompts))
                for first in range(0, len(prompts), at_once):
                    chunk = prompts[first : first + at_once]
                    for prompt, generations in zip(chunk, self._generate(llm, chunk), strict=True):
                        self._deliver(prompt, generations, results)
                        done += 1
                        progress.advance(task)
        except KeyboardInterrupt as interrupt:
            where = f"; run again to go on with {self.output}" if self.output else ""
            _say(f"interrupted: {done} of {len(prompts)} prompts are finished{where}")
            raise typer.Exit(INTERRUPTED) from interrupt
        finally:
            self._write_reports()
        if self.failed:
            _say(f"{self.failed} of {len(prompts)} prompts failed")
        for name in sorted(self.cut_documents):
            _say(f"the document {name!r} was cut to memory.unit_tokens")

    def _generate(self, llm: LLM, chunk: Sequence[Prompt]) -> list[list[Generation]]:
        """The answers to each prompt; a prompt that cannot be served fails alone, unless it is the only one."""
        try:
            found = llm.generate([prompt.text for prompt in chunk], self.params, documents=self.documents)
        except InvalidRequestError as error:
            if len(self.prompts) == 1:
                raise
            if len(chunk) == 1:
                return [[_failure(chunk[0], index, error) for index in range(self.params.n)]]
            return [self._generate(llm, [prompt])[0] for prompt in chunk]
        return [found[start : start + self.params.n] for start in range(0, len(found), self.params.n)]

    def _deliver(self, prompt: Prompt, generations: Sequence[Generation], results: ResultFile | None) -> None:
        self.failed += any(generation.finish_reason == "error" for generation in generations)
        for generation in generations:
            if generation.error:
                _say(f"prompt {prompt.id}: {generation.error}")
            self.cut_documents |= self._cut(generation)
        if self.html or self.trace:
            self.finished += [(prompt, generation) for generation in generations]
        if results is not None:
            results.add(prompt, generations)
        elif self.as_json:
            for generation in generations:
                print(record(prompt.id, generation), flush=True)
        else:
            self._print(prompt, generations)

    def _print(self, prompt: Prompt, generations: Sequence[Generation]) -> None:
        """Plain text where the output is read by a program, colours and marks in a terminal."""
        console = output_console()
        for generation in generations:
            if len(self.prompts) * self.params.n > 1:
                print(f"> {clean(prompt.text)}", flush=True)
            if console.is_terminal:
                console.print(answer_text(generation))
            else:
                print(generation.text, flush=True)
            if len(self.prompts) * self.params.n > 1:
                print(flush=True)

    def _cut(self, generation: Generation) -> set[str]:
        """The ids of the documents that were longer than a memory unit."""
        given = {passage.id for passage in self.documents or ()}
        cut = {event.data["passage"]["id"] for event in generation.trace if event.data.get("was_cut")}
        return cut & given

    def _progress(self) -> Progress:
        """A bar on standard error, unless the answers themselves appear in the same terminal."""
        console = Console(stderr=True)
        shown = console.is_terminal and (self.output is not None or not sys.stdout.isatty())
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        # Standard output is left alone: rich would send it to standard error, away from a pipe or a file.
        return Progress(
            *columns, TimeRemainingColumn(), console=console, disable=not shown, transient=True, redirect_stdout=False
        )

    def _write_reports(self) -> None:
        generations = [generation for _, generation in self.finished]
        if self.html:
            write_page(self.html, generations)
        if self.trace:
            write_trace(self.trace, generations, [prompt.id for prompt, _ in self.finished])


def _failure(prompt: Prompt, index: int, error: InvalidRequestError) -> Generation:
    return Generation(prompt.text, "", (), "error", (), {}, GenerationStats(), (), index=index, error=str(error))


def _say(message: str) -> None:
    print(f"ewe: {message}", file=sys.stderr)
