"""`ewe memory export`, `import`, `stats`, `check` and `scrub`: the upkeep of a whole store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ewe.cli.terminal import clean, say
from ewe.longterm.commands.memory_options import Everybody, MemoryPlace, OneJSON, Owner
from ewe.longterm.commands.memory_view import show_stats
from ewe.text.words import counted


def export(
    store: MemoryPlace,
    file: Annotated[Path, typer.Argument(help="The file to write (JSON lines).", show_default=False)],
    owner: Owner,
    everybody: Everybody = False,
) -> None:
    """Export memories with their histories and the deletion log to a file."""
    from ewe.longterm.store import MemoryStore, export_jsonl

    with MemoryStore.open(store) as opened:
        print(f"{export_jsonl(opened, file, None if everybody else [owner.scope])} memories exported to {file}")


def import_memories(
    store: MemoryPlace,
    file: Annotated[Path, typer.Argument(help="A file that `ewe memory export` wrote.", show_default=False)],
) -> None:
    """Import memories with their histories from a file. Exit code 1 if an id belongs to another memory here."""
    from ewe.longterm.default_memory import open_or_create
    from ewe.longterm.store import import_jsonl

    with open_or_create(store) as opened:
        report = import_jsonl(opened, file)
    result = report.result
    print(f"{result.added} memories added, {result.duplicates} were there, {report.deleted_here} had been deleted here")
    for scope, memory_id in result.conflicts:
        where = clean(f"user {scope.user!r}, agent {scope.agent!r}")
        say(f"{clean(memory_id)} ({where}) is another memory here: left as it is")
    if result.conflicts:
        raise typer.Exit(1)


def stats(store: MemoryPlace, as_json: OneJSON = False) -> None:
    """Print statistics of the store."""
    from ewe.longterm.store import MemoryStore

    with MemoryStore.open(store) as opened:
        show_stats(opened.stats(), as_json)


def check(
    store: MemoryPlace,
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild indexes, words and vectors.")] = False,
) -> None:
    """Check the store for damage and lost history. Exit code 1 if there is any, with --repair if any is left."""
    from ewe.longterm.store import MemoryStore

    with MemoryStore.open(store, read_only=not repair, checked=False) as opened:
        problems = opened.verify()
        for problem in problems:
            print(clean(problem))
        if problems and repair:
            for done in opened.mend():
                say(clean(done))
            problems = opened.verify()
            say(f"{counted(len(problems), 'problem')} left")
        if problems:
            raise typer.Exit(1)
        print(f"{store}: {len(opened)} memories, nothing is damaged")


def scrub(store: MemoryPlace) -> None:
    """Rewrite the store without the traces of deleted memories."""
    from ewe.longterm.store import MemoryStore

    with MemoryStore.open(store, read_only=False) as opened:
        opened.scrub()
    print(f"{store} is scrubbed")
