"""`ewe doctor`: does a model read its memory, and where should it stand?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options

if TYPE_CHECKING:
    from rich.table import Table

    from ewe.config import Config
    from ewe.eval.doctor import Diagnosis


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(
            help="builtin, smollm2, a folder with safetensors, a GGUF file, or a hub id.", show_default="builtin"
        ),
    ] = None,
    adapter: options.Adapter = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
) -> None:
    """Ask a model twenty questions about invented things, with the answers in its prompt and in its memory.

    Exit status 0: it reads its memory, at least in part, 1: it does not.
    """
    from ewe.cli.engine import settings_of
    from ewe.cli.terminal import output_console
    from ewe.components import preflight
    from ewe.eval.doctor import verdict

    chosen = settings_of(config, settings, model, adapter=adapter)
    preflight(chosen)
    found = _diagnose(chosen)
    console = output_console()
    console.print(_table(found))
    for sentence in verdict(found):
        console.print(sentence, markup=False)
    if not found.reads:
        raise typer.Exit(1)


def _diagnose(config: Config) -> Diagnosis:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from ewe.engine.loader import load_model
    from ewe.eval.doctor import diagnose, num_answers

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(config.model.name, total=num_answers())
        return diagnose(config, load_model(config.model), lambda: progress.advance(task))


def _table(found: Diagnosis) -> Table:
    from rich.table import Table

    from ewe.eval.doctor import SEVERAL

    total = found.prompt.total
    table = Table(title=f"right answers of {total}")
    table.add_column("the passage is given")
    table.add_column("alone", justify="right")
    table.add_column(f"with {SEVERAL - 1} others", justify="right")
    table.add_row("not at all", str(found.nothing), "")
    for name, reading in [("in the prompt", found.prompt), *((_name(item.placement), item) for item in found.units)]:
        table.add_row(name, str(reading.one), str(reading.several))
    return table


def _name(placement: str) -> str:
    return f"as a unit, placement {placement}" if placement else "as a unit"
