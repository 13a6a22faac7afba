"""Runs many prompts and brings every result where it belongs: the screen, files, the trace.

Owns: the order of work and what is kept when a run is interrupted. Knows `LLM.generate` and `ewe.report`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ewe.cli.live_text import text_view
from ewe.cli.prompts import Prompt
from ewe.cli.results import ResultFile, record
from ewe.cli.terminal import answer_text, clean, follow, output_console
from ewe.errors import InvalidRequestError
from ewe.report import write_page, write_trace
from ewe.sampling import SamplingParams
from ewe.types import Generation, GenerationStats, Passage

if TYPE_CHECKING:
    from ewe.llm import LLM

INTERRUPTED = 130
_WINDOW = 512  # prompts given to the engine at once: enough to keep it full, few enough to hold


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
    reported: list[tuple[Prompt, Generation]] = field(default_factory=list)
    finished: int = 0
    failed: int = 0
    cut_documents: set[str] = field(default_factory=set)

    @property
    def _streams(self) -> bool:
        """Whether there is one answer and it is printed while it is written."""
        return len(self.prompts) == self.params.n == 1 and not self.as_json and self.output is None

    def run(self, open_llm: Callable[[], LLM]) -> bool:
        """Answers every prompt; False if some failed. What is finished is kept when the run is interrupted."""
        with ResultFile(self.output, self.prompts, self.params.n) if self.output else nullcontext() as results:
            done = results.done if results else 0
            if done:
                _say(f"{done} of {len(self.prompts)} prompts are in {self.output} already")
            if done < len(self.prompts):
                self._answer(open_llm, self.prompts[done:], results)
        return not self.failed

    def _answer(self, open_llm: Callable[[], LLM], prompts: Sequence[Prompt], results: ResultFile | None) -> None:
        try:
            with open_llm() as llm, self._progress() as progress:
                task = progress.add_task("prompts", total=len(prompts))

                def deliver(prompt: Prompt, generations: Sequence[Generation]) -> None:
                    self._deliver(prompt, generations, results)
                    progress.advance(task)

                if self._streams:
                    with text_view(output_console()) as view:
                        answer = follow(llm.stream(prompts[0].text, self.params, self.documents), view)
                    deliver(prompts[0], [answer])
                else:
                    for first in range(0, len(prompts), _WINDOW):
                        self._generate(llm, prompts[first : first + _WINDOW], deliver)
        except KeyboardInterrupt as interrupt:
            where = f"; run again to go on with {self.output}" if results else ""
            _say(f"interrupted: {self.finished} of {len(prompts)} prompts are finished{where}")
            raise typer.Exit(INTERRUPTED) from interrupt
        finally:
            self._write_reports()
        if self.failed:
            _say(f"{self.failed} of {len(prompts)} prompts failed")
        for name in sorted(self.cut_documents):
            _say(f"the document {name!r} was cut to memory.unit_tokens")

    def _generate(
        self, llm: LLM, prompts: Sequence[Prompt], deliver: Callable[[Prompt, Sequence[Generation]], None]
    ) -> None:
        """Delivers the answers in the order of the prompts, each as soon as those before it are there.

        The engine refuses all prompts if one cannot be served; they are then halved until that one fails alone.
        """
        waiting: list[list[Generation]] = [[] for _ in prompts]
        delivered = 0

        def on_result(number: int, generation: Generation) -> None:
            nonlocal delivered
            waiting[number].append(generation)
            while delivered < len(prompts) and len(waiting[delivered]) == self.params.n:
                answers = sorted(waiting[delivered], key=lambda answer: answer.index)
                waiting[delivered] = []
                deliver(prompts[delivered], answers)
                delivered += 1

        try:
            llm.generate([prompt.text for prompt in prompts], self.params, self.documents, on_result=on_result)
        except InvalidRequestError as error:
            if len(self.prompts) == 1:
                raise
            if len(prompts) == 1:
                deliver(prompts[0], [_failure(prompts[0], index, error) for index in range(self.params.n)])
                return
            middle = len(prompts) // 2
            self._generate(llm, prompts[:middle], deliver)
            self._generate(llm, prompts[middle:], deliver)

    def _deliver(self, prompt: Prompt, generations: Sequence[Generation], results: ResultFile | None) -> None:
        self.finished += 1
        self.failed += any(generation.finish_reason == "error" for generation in generations)
        for generation in generations:
            if generation.error:
                _say(f"prompt {prompt.id}: {generation.error}")
            self.cut_documents |= self._cut(generation)
        if self.html or self.trace:
            self.reported += [(prompt, generation) for generation in generations]
        if results is not None:
            results.add(prompt, generations)
        elif self.as_json:
            for generation in generations:
                print(record(prompt.id, generation), flush=True)
        elif not self._streams:
            self._print(prompt, generations)

    def _print(self, prompt: Prompt, generations: Sequence[Generation]) -> None:
        """Plain text where the output is read by a program, colours and marks in a terminal."""
        console = output_console()
        for generation in generations:
            print(f"> {clean(prompt.text)}")
            if console.is_terminal:
                console.print(answer_text(generation))
            else:
                print(generation.text)
            print()
        sys.stdout.flush()

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
        generations = [generation for _, generation in self.reported]
        if self.html:
            write_page(self.html, generations)
        if self.trace:
            write_trace(self.trace, generations, [prompt.id for prompt, _ in self.reported])


def _failure(prompt: Prompt, index: int, error: InvalidRequestError) -> Generation:
    return Generation(prompt.text, "", (), "error", (), {}, GenerationStats(), (), index=index, error=str(error))


def _say(message: str) -> None:
    print(f"ewe: {message}", file=sys.stderr)
