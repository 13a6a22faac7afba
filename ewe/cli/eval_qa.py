"""`ewe eval qa`: does a model read its memory as well as its prompt? Asked with any questions that have answers."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ewe.cli import options
from ewe.cli.engine import open_model, settings_of
from ewe.cli.findings_file import FigureOptions, FindingsFile, recording, run_settings
from ewe.cli.terminal import output_console
from ewe.config import Config
from ewe.engine.startup.preflight import preflight
from ewe.evaluation.qa_questions import read_questions
from ewe.open_datastore import open_passages
from ewe.retrieval.datastore import Datastore
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.evaluation.qa_report import Answer, Row, Timing
    from ewe.evaluation.qa_run import Job
    from ewe.retrieval.source import PassageSource


def qa(
    *,
    questions: Annotated[
        Path,
        typer.Option(
            help="JSONL with question, answers, passage (a text or an id in the datastore), title; or a SQuAD .json.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ],
    datastore: options.Datastore = None,
    model: options.Model = None,
    adapter: options.Adapter = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    top_k: Annotated[
        list[int] | None,
        typer.Option("--top-k", "-k", min=1, help="Passages given at once. Repeatable.", show_default="1, 2, 4, 8"),
    ] = None,
    k: Annotated[list[int] | None, typer.Option("--k", min=1, hidden=True)] = None,  # as it was called at first
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first questions.", show_default="all")] = None,
    timed: Annotated[
        int, typer.Option(min=0, help="Questions that are also asked one at a time, to measure tokens and times.")
    ] = 20,
    max_tokens: options.MaxTokens = 32,
    output: options.OutputFile = None,
    figures: FigureOptions,
) -> None:
    """Ask without passages, with them in the prompt, as memory units and with retrieved passages, and compare."""
    from ewe.evaluation.qa_report import Answer, Timing, summarise
    from ewe.evaluation.qa_run import Job, systems_of

    chosen = settings_of(model, config, settings, adapter=adapter, datastore=datastore)
    preflight(chosen)
    source = None if chosen.datastore is None else open_passages(chosen.datastore)
    passages = [] if source is None else [passage for _, passage in source.scan()]
    chosen_questions = read_questions(questions, passages)
    pool = passages or Datastore(question.passage for question in chosen_questions).passages
    systems = systems_of([*(top_k or ()), *(k or ())] or (1, 2, 4, 8), source is not None)
    job = Job(chosen_questions[:limit], pool, systems, max_tokens, timed, first_alone=True)
    kinds: list[type[Answer | Timing]] = [Answer, Timing]
    written_with = _written_with(chosen, job)
    with closing(FindingsFile(output, written_with, kinds)) as findings:
        _ask(job, chosen, source, findings)
    answers = [item for item in findings.records if isinstance(item, Answer)]
    timings = [item for item in findings.records if isinstance(item, Timing)]
    rows = summarise([system.name for system in job.systems], answers, timings)
    _tell(rows, written_with, figures)


def _written_with(config: Config, job: Job) -> dict[str, Any]:
    params = SamplingParams(max_tokens=job.max_tokens)
    content = repr((job.questions, job.pool)).encode()
    settings = run_settings(config, params)
    return {**settings, "questions": len(job.questions), "content": hashlib.sha256(content).hexdigest()[:12]}


def _ask(job: Job, config: Config, source: PassageSource | None, findings: FindingsFile[Answer | Timing]) -> None:
    from ewe.evaluation.qa_run import run

    done = {(type(item), item.question, item.system) for item in findings.records}
    missing = job.missing(done)
    if not missing:
        return
    loaded = open_model(config)
    with recording(findings, config.model.name, missing, others=missing - 1) as take:
        run(job, config, loaded, source, done, take)


def _tell(rows: list[Row], settings: dict[str, Any], figures: FigureOptions) -> None:
    from ewe.evaluation.qa_report import save_plot, table
    from ewe.evaluation.tables import markdown_table, rich_table

    figures.write({"systems": [asdict(row) for row in rows], "settings": settings})
    if figures.plot is not None:
        save_plot(rows, figures.plot)
    if figures.markdown:
        print(markdown_table(*table(rows)))
    else:
        output_console().print(rich_table(*table(rows), "95% intervals in brackets"))
