"""`ewe index check`: damage in datastores and in folders of encoded units is named, and mended where it can be."""

from pathlib import Path
from typing import Annotated

import typer

from ewe.cli.terminal import clean, say
from ewe.text.words import counted


def check_command(
    store: Annotated[
        Path, typer.Argument(help="Folder of a datastore, or of encoded units.", metavar="DIR", show_default=False)
    ],
    mend: Annotated[
        bool,
        typer.Option("--repair", help="Remove altered passages, and damaged data derived from passages."),
    ] = False,
) -> None:
    """Check a datastore with its indexes, or encoded units. Exit code 1 if there is damage, or --repair leaves any."""
    from ewe.retrieval.ingest.repair import repair
    from ewe.retrieval.store import PassageStore

    if not PassageStore.exists(store) and _holds_units(store):
        _check_units(store, mend)
        return
    with PassageStore.open(store) as opened:
        problems = opened.verify()
    for problem in problems:
        print(clean(problem))
    if problems and mend:
        for done in repair(store):
            say(clean(done))
    with PassageStore.open(store) as opened:
        if opened.verify() if mend else problems:
            raise typer.Exit(1)
        print(f"{store}: {counted(len(opened), 'passage')}, generation {opened.generation}, nothing is damaged")


def _holds_units(folder: Path) -> bool:
    from ewe.engine.units.unit_files import MANIFEST

    return (folder / MANIFEST).exists()


def _check_units(folder: Path, mend: bool) -> None:
    """As `check_command`, for what `ewe index precompute` made; damaged files are removed."""
    from ewe.engine.units.unit_check import damaged_shards

    damaged = damaged_shards(folder)
    for path, problem in damaged.items():
        print(clean(problem))
        if mend:
            path.unlink()
            say(f"{path} is removed: 'ewe index precompute' encodes its units again")
    if damaged and not mend:
        raise typer.Exit(1)
    print(f"{folder}: nothing is damaged")
