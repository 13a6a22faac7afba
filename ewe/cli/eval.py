"""`ewe eval`: decoding policies against exact ground truth.

Owns: the subcommand, its progress bar and where the results go. Knows `ewe.eval`.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ewe.cli import options
from ewe.cli.eval_qa import qa

eval_app = typer.Typer(no_args_is_help=True, help="Measure decoding policies, and how memory is read.")


@eval_app.callback()
def evaluations() -> None:
    """Measure decoding policies against exact ground truth, and how a model reads its memory."""


eval_app.command("qa")(qa)


@eval_app.command("world")
def world(
    people: Annotated[int, typer.Option(help="People per seed.", min=2)] = 200,
    seeds: Annotated[int, typer.Option(help="How many worlds.", min=1)] = 3,
    first_seed: Annotated[int, typer.Option(help="Seed of the first world.", min=0, max=900_000)] = 100,
    only: Annotated[list[str] | None, typer.Option("--system", help="Only this system (repeatable).")] = None,
    settings: options.Settings = None,
    json_file: options.FiguresFile = None,
    plot: options.PlotFile = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
) -> None:
    """Compare no memory, RAG and EWE on lives of fictional people that no training has seen."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ewe.cli.collect_env import environment
    from ewe.errors import ConfigError
    from ewe.eval.world_run import evaluate
    from ewe.eval.world_systems import SYSTEMS
    from ewe.eval.world_table import as_json, markdown_table, rich_table, save_plot

    chosen = [system for system in SYSTEMS if not only or system.name in only]
    if len(chosen) < len(set(only or ())):
        raise ConfigError(f"unknown system; known: {', '.join(system.name for system in SYSTEMS)}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("answers", total=len(chosen) * seeds * people)
        report = evaluate(
            chosen,
            range(first_seed, first_seed + seeds),
            people,
            settings or (),
            on_answer=lambda system, seed: progress.update(task, advance=1, description=f"{system.name}, seed {seed}"),
        )
    if json_file is not None:
        document = {**as_json(report), "environment": environment()}
        json_file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if plot is not None:
        save_plot(report, plot)
    if markdown:
        print(markdown_table(report))
    else:
        Console().print(rich_table(report))
