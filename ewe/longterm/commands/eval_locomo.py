"""`ewe eval locomo`: does a chat with memory answer questions about long conversations better than without?"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ewe.cli import options
from ewe.cli.engine import open_llm, settings_of
from ewe.cli.findings_file import FigureOptions, FindingsFile, content_digest, recording, run_settings
from ewe.cli.terminal import output_console, say
from ewe.config import Config
from ewe.engine.startup.preflight import preflight
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.longterm.evaluation.locomo_report import LoCoMoAnswer
    from ewe.longterm.evaluation.locomo_run import LoCoMoJob

_SYSTEMS = "no memory,last turns,none,default,mma,verimem,mark,none units,mma units,verimem units,mark units"
_BASELINE = "last turns"
_Part = Literal["tuning", "held-out", "all"]


def locomo(
    *,
    data: Annotated[
        Path, typer.Option(help="LoCoMo's file of conversations (locomo10.json of its repository).", show_default=False)
    ],
    model: options.Model = None,
    adapter: options.Adapter = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    systems: Annotated[
        str, typer.Option(help="no memory, last turns, or scorers, whose memories stand in the prompt or as units.")
    ] = _SYSTEMS,
    part: Annotated[
        _Part, typer.Option(help="Which conversations; the search was tuned on the first three.")
    ] = "held-out",
    questions: Annotated[
        int | None, typer.Option(min=1, help="Number of questions, sampled from the part.", show_default="all")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for sampling.")] = 0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", "-k", min=1, help="Memories per question.", show_default="longterm.top_k")
    ] = None,
    max_tokens: options.MaxTokens = 32,
    output: options.OutputFile = None,
    figures: FigureOptions,
) -> None:
    """Ask a chat model LoCoMo's questions with the last turns in its prompt and with memories, and compare."""
    from ewe.longterm.evaluation.locomo_questions import draw, read_conversations
    from ewe.longterm.evaluation.locomo_recall import scorer_of
    from ewe.longterm.evaluation.locomo_report import LoCoMoAnswer
    from ewe.longterm.evaluation.locomo_run import LoCoMoJob, locomo_settings

    chosen = settings_of(model, config, settings, adapter=adapter)
    names = [name.strip() for name in systems.split(",") if name.strip()]
    for name in names:
        scorer_of(name)
    conversations = read_conversations(data, part)
    limit = top_k or chosen.longterm.top_k
    chosen = locomo_settings(chosen, limit)
    preflight(chosen)
    job = LoCoMoJob(conversations, draw(conversations, questions, seed), names, limit, max_tokens)
    drawn = {"part": part, "seed": seed, "top_k": limit, "content": content_digest(str(data))}
    written_with = {**run_settings(chosen, SamplingParams(max_tokens=max_tokens)), **drawn}
    with closing(FindingsFile(output, written_with, [LoCoMoAnswer])) as findings:
        _ask(job, chosen, findings)
    _tell(job, findings.records, {**written_with, "questions": len(job.questions), "systems": names}, figures)


def _ask(job: LoCoMoJob, config: Config, findings: FindingsFile[LoCoMoAnswer]) -> None:
    from ewe.longterm.evaluation.locomo_recall import open_memories_of
    from ewe.longterm.evaluation.locomo_run import LoCoMoRun
    from ewe.retrieval.encoders import SentenceEncoder, builtin_encoder_path

    done = {(one.question, one.system) for one in findings.records}
    missing = sum(len(systems) for _, systems in job.missing(done))
    if not missing:
        return
    encoder = SentenceEncoder(config.retrieval.encoder) if config.retrieval.encoder or builtin_encoder_path() else None
    say(f"{sum(len(one.turns) for one in job.conversations)} turns are remembered; then {missing} answers are made")
    with closing(open_llm(config)) as llm, open_memories_of(job.conversations, job.systems, encoder) as memories:
        total = len(job.questions) * len(job.systems)
        with recording(findings, config.model.name, total, total - missing, others=missing - 1) as take:
            LoCoMoRun(job, llm, memories).run(done, take)


def _tell(job: LoCoMoJob, answers: list[LoCoMoAnswer], settings: dict[str, Any], figures: FigureOptions) -> None:
    from ewe.evaluation.tables import markdown_table, rich_table, save_bars
    from ewe.longterm.evaluation.locomo_report import locomo_table, selective_rows, selective_table, summarise_locomo

    question_ids = {question.id for question in job.questions}
    answers = [one for one in answers if one.question in question_ids]
    rows, chosen = summarise_locomo(job.systems, answers, _BASELINE), selective_rows(job.systems, answers)
    figures.write(
        {"systems": [asdict(row) for row in rows], "selective": [asdict(row) for row in chosen], "settings": settings}
    )
    if figures.plot is not None:
        save_bars(
            [row.system for row in rows],
            {"answers that contain the right one": [row.contained for row in rows]},
            figures.plot,
        )
    titled = {
        f"LoCoMo, answers; 95% intervals in brackets, difference and ratio to {_BASELINE}": locomo_table(rows),
        "LoCoMo, selective answers; area under risk over coverage, less is better": selective_table(chosen),
    }
    for title, table in titled.items():
        if figures.markdown:
            print(f"{title}\n\n{markdown_table(*table)}\n")
        else:
            output_console().print(rich_table(*table, title))
