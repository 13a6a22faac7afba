"""`ewe batch`: a file of requests in OpenAI's batch format, answered as the server would, without a server."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, TaskID

from ewe.cli import options
from ewe.cli.engine import open_llm, server_packages
from ewe.cli.findings_file import content_digest, run_settings
from ewe.cli.result_file import check_settings, note_settings
from ewe.cli.terminal import INTERRUPTED, progress_bar, say
from ewe.config import GPU_PLACES
from ewe.errors import InvalidRequestError
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.config import Config
    from ewe.server.batch.result_log import ResultLog
    from ewe.server.settings import ServerSettings

_ERRORS_TOLD = 10
# What of the server's settings can change an answer.
_THAT_MATTER = {
    *("served_model_name", "max_body_bytes", "max_prompt_tokens", "max_tokens", "max_n", "strict", "deadline"),
    "tool_parser",
}


@dataclass(frozen=True, slots=True)
class _Work:
    """Requests, how they are to be answered and where the answers go. progress: to be entered once models are read."""

    requests: Path
    config: Config
    server: ServerSettings
    max_concurrency: int
    log: ResultLog
    progress: Progress
    task: TaskID

    def note(self) -> None:
        """One more is in the log."""
        self.progress.advance(self.task)


def batch(
    *,
    requests: Annotated[
        Path, typer.Argument(help="Requests in OpenAI's batch format: JSONL or Parquet.", exists=True, dir_okay=False)
    ],
    output: options.OutputFile = None,
    max_concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum concurrent requests.", show_default="twice scheduler.max_num_seqs"),
    ] = None,
    ray: Annotated[
        int | None,
        typer.Option(min=1, help="Number of engines on Ray's machines, instead of one here.", show_default=False),
    ] = None,
    engine: options.EngineOptions,
) -> None:
    """Answer a file of requests as `ewe serve` would, with its settings.

    Without --output, results are written next to the requests, to NAME.results.jsonl.
    Exit status 0: all requests were answered, 1: some with an error, 2: an error.
    """
    with server_packages("ewe batch"):
        import_module("ewe.server.app")
    from ewe.server.settings import resolve_settings

    chosen, server, _ = resolve_settings(engine.model, engine.config, os.environ, engine.assignments)
    places = max_concurrency or 2 * (chosen.scheduler.max_num_seqs or GPU_PLACES)
    answer = _answer_here if ray is None else partial(_answer_with_ray, engines=ray)
    log = _run(requests, output or requests.with_suffix(".results.jsonl"), chosen, server, places, answer)
    if log.failed:
        raise typer.Exit(1)


def _run(
    path: Path,
    output: Path,
    config: Config,
    server: ServerSettings,
    max_concurrency: int,
    answer: Callable[[_Work], None],
) -> ResultLog:
    """Has answered what `output` does not hold yet. Raises InvalidRequestError for a file of another run."""
    from ewe.server.batch.result_log import ResultLog

    total = _count(path)
    of_server = server.model_dump(mode="json", include=_THAT_MATTER)
    of_engine = run_settings(config, SamplingParams())
    written_with = {**of_engine, "server": of_server, "requests": content_digest(str(path))}
    check_settings(output, written_with)
    log = ResultLog(output)
    note_settings(output, bool(log.answered), written_with)
    if len(log.answered) < total:
        if log.answered:
            say(f"{len(log.answered)} of {total} requests are answered already")
        progress = progress_bar()
        task = progress.add_task("requests", total=total, completed=len(log.answered))
        try:
            with log:
                answer(_Work(path, config, server, max_concurrency, log, progress, task))
        except KeyboardInterrupt as interrupt:
            say(f"interrupted: {len(log.answered)} of {total} requests are answered; run again to go on")
            raise typer.Exit(INTERRUPTED) from interrupt
    say(f"{log.completed} of {total} requests are answered in {output}, {log.failed} with an error")
    return log


def _count(path: Path) -> int:
    """How many requests there are; raises InvalidRequestError that names each line that is none."""
    from ewe.server.batch.requests import check_requests

    checked = check_requests(path)
    if checked.errors:
        errors = [str(error) for error in checked.errors[:_ERRORS_TOLD]]
        raise InvalidRequestError("\n  ".join([f"{path} is no batch of requests:", *errors]))
    return checked.total


def _answer_here(work: _Work) -> None:
    """Brings the answer to every request into the log, from an engine in this process."""
    import asyncio

    from ewe.server.batch.dispatch import answer_requests
    from ewe.server.batch.requests import read_requests
    from ewe.server.offline import offline_caller

    with open_llm(work.config) as llm, work.progress:
        caller = offline_caller(llm, work.server, work.max_concurrency)
        places = asyncio.Semaphore(work.max_concurrency)
        try:
            asyncio.run(answer_requests(read_requests(work.requests), caller.answer, work.log, places, work.note))
        finally:
            caller.service.close()


def _answer_with_ray(work: _Work, engines: int) -> None:
    """Brings the answer to every request into the log, from engines on Ray's machines."""
    import asyncio

    from ewe.server.batch.requests import read_requests
    from ewe.server.router.ray_data import answer_with_ray

    left = (request for request in read_requests(work.requests) if request.custom_id not in work.log.answered)
    with work.progress:
        for custom_id, reply in answer_with_ray(left, work.config, work.server, work.max_concurrency, engines):
            asyncio.run(work.log.add(custom_id, reply))
            work.note()
