"""Runs many prompts and brings every result where it belongs: the screen, files, the trace."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

from ewe.cli.prompt_runner import PromptForm, PromptRunner, print_answer, show_stream, why_empty
from ewe.cli.prompts import Prompt
from ewe.cli.result_file import ResultFile, record
from ewe.cli.terminal import INTERRUPTED, progress_bar, say
from ewe.errors import InvalidRequestError
from ewe.evaluation.report import write_page, write_trace
from ewe.types import Generation, GenerationStats, Passage
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.llm import LLM

_WINDOW = 512  # prompts given to the engine at once: enough to keep it full, few enough to hold


@dataclass(slots=True)
class Batch:
    """Prompts, what is asked of them and where the answers go. settings: what an `output` file must be written with."""

    prompts: Sequence[Prompt]
    params: SamplingParams
    form: PromptForm
    documents: Sequence[Passage] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    as_json: bool = False
    output: Path | None = None
    html: Path | None = None
    trace: Path | None = None
    reported: list[tuple[Prompt, Generation]] = field(default_factory=list)
    finished: int = 0
    failed: int = 0
    empty: Counter[str] = field(default_factory=Counter)
    cut_documents: set[str] = field(default_factory=set)

    @property
    def _streams(self) -> bool:
        return len(self.prompts) == self.params.n == 1 and not self.as_json and self.output is None

    def run(self, open_llm: Callable[[], LLM]) -> bool:
        """Answers every prompt; False if some failed, or if no answer holds any text.

        What is finished is kept when the run is interrupted.
        """
        with self._results() as results:
            done = results.done if results else 0
            if done:
                say(f"{done} of {len(self.prompts)} prompts are in {self.output} already")
            if done < len(self.prompts):
                self._answer(open_llm, self.prompts[done:], results)
        all_empty = 0 < self.finished * self.params.n == self.empty.total()
        return not self.failed and not all_empty

    def _results(self) -> AbstractContextManager[ResultFile | None]:
        if self.output is None:
            return nullcontext()
        return ResultFile(self.output, self.prompts, self.params.n, self.settings)

    def _answer(self, open_llm: Callable[[], LLM], prompts: Sequence[Prompt], results: ResultFile | None) -> None:
        try:
            with open_llm() as llm, self._progress() as progress:
                runner = PromptRunner(llm, self.form, self.params, self.documents)
                runner.check(prompts)
                task = progress.add_task("prompts", total=len(prompts))

                def deliver(prompt: Prompt, generations: Sequence[Generation]) -> None:
                    # The prompt as it was given, not as the template made it.
                    answers = [replace(generation, prompt=prompt.text) for generation in generations]
                    self.empty.update(filter(None, (why_empty(generation, runner) for generation in answers)))
                    self._deliver(prompt, answers, results)
                    progress.advance(task)

                if self._streams:
                    deliver(prompts[0], [show_stream(runner.stream(prompts[0]), llm.verifies)])
                else:
                    for first in range(0, len(prompts), _WINDOW):
                        self._generate(runner, prompts[first : first + _WINDOW], deliver)
        except KeyboardInterrupt as interrupt:
            where = f"; run again to go on with {self.output}" if results else ""
            say(f"interrupted: {self.finished} of {len(prompts)} prompts are finished{where}")
            raise typer.Exit(INTERRUPTED) from interrupt
        finally:
            self._write_reports()
        self._tell(len(prompts))

    def _tell(self, requested: int) -> None:
        if self.failed:
            say(f"{self.failed} of {requested} prompts failed")
        answers = requested * self.params.n
        for reason, count in self.empty.items():
            say(f"empty answer{'' if answers == 1 else f' ({count} of {answers})'}: {reason}")
        for name in sorted(self.cut_documents):
            say(f"the document {name!r} was cut to memory.unit_tokens")

    def _generate(
        self, runner: PromptRunner, prompts: Sequence[Prompt], deliver: Callable[[Prompt, Sequence[Generation]], None]
    ) -> None:
        """Delivers the answers in the order of the prompts, each as soon as those before it are there.

        One of several prompts that cannot be served fails alone; the only one raises InvalidRequestError.
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

        def on_refused(number: int, error: InvalidRequestError) -> None:
            if len(self.prompts) == 1:
                raise error
            failure = Generation(prompts[number].text, "", (), "error", (), {}, GenerationStats(), (), error=str(error))
            for index in range(self.params.n):
                on_result(number, replace(failure, index=index))

        runner.generate(prompts, on_result, on_refused)

    def _deliver(self, prompt: Prompt, generations: Sequence[Generation], results: ResultFile | None) -> None:
        self.finished += 1
        self.failed += any(generation.finish_reason == "error" for generation in generations)
        given = {passage.id for passage in self.documents or ()}
        for generation in generations:
            if generation.error:
                say(f"prompt {prompt.id}: {generation.error}")
            cut = {event.data["passage"]["id"] for event in generation.trace if event.data.get("was_cut")}
            self.cut_documents |= cut & given
        if self.html or self.trace:
            self.reported += [(prompt, generation) for generation in generations]
        if results is not None:
            results.add(prompt, generations)
        elif self.as_json:
            for generation in generations:
                print(record(prompt, generation), flush=True)
        elif not self._streams:
            for generation in generations:
                print_answer(prompt, generation)

    def _progress(self) -> Progress:
        """A bar, unless the answers themselves appear in the same terminal."""
        columns = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        return progress_bar(*columns, is_shown=self.output is not None or not sys.stdout.isatty())

    def _write_reports(self) -> None:
        generations = [generation for _, generation in self.reported]
        if self.html and generations:
            write_page(self.html, generations)
        if self.trace and generations:
            write_trace(self.trace, generations, [prompt.id for prompt, _ in self.reported])
