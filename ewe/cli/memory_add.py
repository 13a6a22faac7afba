"""`ewe memory add`: memories written down from the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli.memory_options import Agent, Store, User

if TYPE_CHECKING:
    from ewe.longterm.records import Memory, MemorySource, Scope
    from ewe.longterm.store import MemoryStore
    from ewe.verification.judges.protocol import Judge


def add(
    store: Store,
    content: Annotated[
        str, typer.Argument(help="What to remember; '-' reads one memory per line from standard input.")
    ],
    user: User = "",
    agent: Agent = "",
    memory_id: Annotated[str | None, typer.Option("--id", help="Its id.", show_default="made up")] = None,
    kind: Annotated[str, typer.Option(help="What sort of memory it is.")] = "fact",
    source: Annotated[str, typer.Option(help="Where it comes from: a kind, or KIND:ID.")] = "user",
    reliability: Annotated[float, typer.Option(min=0, max=1, help="How far that source can be believed.")] = 0.5,
    veracity: Annotated[
        float | None, typer.Option(min=0, max=1, help="How far the memory can be believed.", show_default="0.5")
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Score it, and mark what it contradicts, by this judge: builtin, base, values, a folder or hub id, or "
            "openai:MODEL@URL.",
            show_default="as it is given",
        ),
    ] = None,
) -> None:
    """Add a memory, or one per line; makes the store if there is none. Prints their ids."""
    from ewe.longterm.records import MemorySource, Scope
    from ewe.longterm.store import MemoryStore
    from ewe.longterm.store.database import FILE_NAME
    from ewe.verification.judges.load import load_judge

    if content == "-" and memory_id is not None:
        raise typer.BadParameter("--id names one memory, not the lines of standard input")
    if judge is not None and (memory_id is not None or veracity is not None):
        raise typer.BadParameter("with --judge the id comes from the words and the veracity from the scores")
    loaded = load_judge(judge) if judge is not None else None
    contents = [line.strip() for line in sys.stdin if line.strip()] if content == "-" else [content]
    source_kind, _, source_id = source.partition(":")
    said, scope = MemorySource(source_kind, source_id, reliability), Scope(user, agent)
    given = [] if loaded else _memories(contents, scope, said, kind, memory_id, 0.5 if veracity is None else veracity)
    opened = MemoryStore.open(store, read_only=False) if (store / FILE_NAME).exists() else MemoryStore.create(store)
    with opened:
        if loaded is not None:
            _judged(opened, loaded, contents, scope, said, kind)
        else:
            _given(opened, given)


def _memories(
    contents: Sequence[str], scope: Scope, source: MemorySource, kind: str, memory_id: str | None, veracity: float
) -> list[Memory]:
    from uuid import uuid4

    from ewe.longterm.records import Memory
    from ewe.longterm.scoring.verimem import veracity_uncertainty

    now, uncertainty = time.time(), veracity_uncertainty(veracity)
    return [
        Memory(
            memory_id or uuid4().hex, text, kind, source, scope, created_at=now, updated_at=now, veracity=veracity,
            uncertainty=uncertainty,
        )
        for text in contents
    ]  # fmt: skip


def _given(store: MemoryStore, memories: Sequence[Memory]) -> None:
    """Adds memories as they are. Raises InvalidRequestError if the id of one stands for another memory."""
    from ewe.errors import InvalidRequestError

    result = store.add(memories)
    for each in memories:
        print(each.id)
    if result.conflicts:
        raise InvalidRequestError(f"the id {memories[0].id!r} stands for another memory there: choose another one")


def _judged(
    store: MemoryStore, judge: Judge, contents: Sequence[str], scope: Scope, source: MemorySource, kind: str
) -> None:
    """Adds memories one by one, each compared with those before it; says what contradicts what."""
    from ewe.cli.terminal import clean, say
    from ewe.longterm.service import MemoryService

    service = MemoryService(store, judge=judge)
    for text in contents:
        memory = service.add(text, scope, source, kind)
        print(memory.id)
        for other in memory.contradicts:
            say(f"{memory.id} contradicts {clean(other)}: both are kept and marked")
