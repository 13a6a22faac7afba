"""`ewe memory`: memories that last, from the command line."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli.index_report import indexing
from ewe.cli.options import HTMLFile, expand_groups
from ewe.config.config_evidence import SEARCH_TOP_K
from ewe.errors import InvalidRequestError
from ewe.longterm.commands.memory_changes import restore, superseded, why
from ewe.longterm.commands.memory_options import AsOf, EncoderName, MemoryPlace, OneJSON, Owner
from ewe.longterm.commands.memory_review import review
from ewe.longterm.commands.memory_upkeep import check, export, import_memories, scrub, stats
from ewe.longterm.commands.memory_view import (
    show_erased,
    show_history,
    show_hits,
    show_listed,
    write_history_page,
)
from ewe.longterm.commands.memory_write import add, mcp, remember
from ewe.longterm.records import Memory, Revision, as_it_was

if TYPE_CHECKING:
    from ewe.longterm.store import MemoryStore
    from ewe.retrieval.encoders import Encoder

memory_app = typer.Typer(no_args_is_help=True, help="Store and search long-term memories.")

memory_app.command("add")(expand_groups(add))
memory_app.command("remember")(expand_groups(remember))


@memory_app.command("search")
@expand_groups
def search_command(
    store: MemoryPlace,
    query: Annotated[str, typer.Argument(help="The query.", show_default=False)],
    owner: Owner,
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="Maximum number of memories to show.")
    ] = SEARCH_TOP_K,
    encoder: EncoderName = None,
    as_of: AsOf = None,
    by_words: Annotated[bool, typer.Option("--words", help="Search by words only, even if there are vectors.")] = False,
    as_json: OneJSON = False,
) -> None:
    """Search the memories that this user and agent may see: their own and shared ones, best first."""
    from ewe.longterm.memory_search import MemorySearch, visible
    from ewe.longterm.query_time import period_of

    with _open(store) as opened:
        known = opened.stats()["encoder"] is not None and not by_words
        search = MemorySearch(opened, _encoder(encoder) if known else None)
        period = period_of(query, None if as_of is None else _seconds(as_of), time.time())
        [hits] = search.search([query], visible(owner.user, owner.agent), top_k, period)
    show_hits(hits, search.description, as_json)


@memory_app.command("show")
@expand_groups
def show_command(
    store: MemoryPlace,
    memory_id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.", show_default=False)],
    owner: Owner,
    as_of: AsOf = None,
    html: HTMLFile = None,
    as_json: OneJSON = False,
) -> None:
    """Show a memory and its history."""
    with _open(store) as opened, opened.snapshot():
        memory, revisions = opened.get(owner.scope, memory_id), opened.history(owner.scope, memory_id)
        memory = _as_it_was(memory, revisions, as_of)
        if html is not None:
            write_history_page(html, opened, memory, revisions)
    show_history(memory, revisions, as_json)


memory_app.command("review")(expand_groups(review))
memory_app.command("superseded")(expand_groups(superseded))
memory_app.command("why")(expand_groups(why))
memory_app.command("restore")(expand_groups(restore))
memory_app.command("mcp")(expand_groups(mcp))


@memory_app.command("list")
@expand_groups
def list_command(store: MemoryPlace, owner: Owner, as_of: AsOf = None, as_json: OneJSON = False) -> None:
    """List users and agents; with --user (every agent) or --agent their memories, in the order they were added."""
    with _open(store) as opened, opened.snapshot():
        sizes = {
            scope: size
            for scope, size in opened.scopes().items()
            if owner.user in ("", scope.user) and owner.agent in ("", scope.agent)
        }
        is_listed = owner != Owner()
        memories: Iterable[Memory] = opened.scan(list(sizes)) if is_listed or as_of is not None else ()
        if as_of is not None:
            held = [one for one in memories if one.holds_at(_seconds(as_of))]
            counts = Counter(one.scope for one in held)
            sizes = {scope: counts[scope] for scope in sizes}
            was = (_as_it_was(one, opened.history(one.scope, one.id), as_of) for one in held)
            memories = was if is_listed else ()
        show_listed(sizes, memories, as_json)


@memory_app.command("delete")
@expand_groups
def delete_command(
    store: MemoryPlace,
    owner: Owner,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="The memories' ids.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="All memories of this user with every agent, or of the given scope.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Reason for the deletion log.")] = "asked for",
    scrub: Annotated[bool, typer.Option("--scrub/--no-scrub", help="Also remove their traces from the file.")] = True,
    exports: Annotated[
        list[Path] | None,
        typer.Option(
            "--export", metavar="FILE", help="An export file to remove the user from as well. Repeatable.", exists=True
        ),
    ] = None,
) -> None:
    """Delete memories and their histories permanently. Exit code 1 if one of them does not exist."""
    from ewe.longterm.store import erase_from_export

    if bool(ids) == everything:
        raise typer.BadParameter("name ids, or --everything")
    if exports and not (everything and owner.user and not owner.agent):
        raise typer.BadParameter("exports are for --everything of a --user", param_hint="--export")
    for file in exports or ():
        print(f"{erase_from_export(file, owner.user)} memories taken out of {file}")
    with _open(store, read_only=False) as opened:
        if everything and owner.user and not owner.agent:
            erased = opened.erase(owner.user, at=time.time(), reason=reason)
            deleted = sum(part.memories for part in erased)
        else:
            erased = []
            deleted = opened.delete(owner.scope, ids or None, at=time.time(), reason=reason)
        if scrub:
            opened.scrub()
    show_erased(erased)
    print(f"{deleted} memories deleted")
    if ids and deleted < len(set(ids)):
        raise typer.Exit(1)


@memory_app.command("embed")
def embed_command(
    store: MemoryPlace,
    encoder: EncoderName = None,
    replace: Annotated[bool, typer.Option("--replace", help="Recompute existing vectors as well.")] = False,
) -> None:
    """Compute vectors for memories that have none, so that they are also found by meaning."""
    with _open(store, read_only=False) as opened, indexing() as show:
        print(f"{opened.embeddings.embed(_encoder(encoder), replace, show)} memories embedded")


memory_app.command("export")(expand_groups(export))
memory_app.command("import")(import_memories)
memory_app.command("stats")(stats)
memory_app.command("check")(check)
memory_app.command("verify", hidden=True)(check)
memory_app.command("scrub")(scrub)


def _open(place: str, read_only: bool = True) -> MemoryStore:
    from ewe.longterm.store import MemoryStore

    return MemoryStore.open(place, read_only)


def _as_it_was(memory: Memory, revisions: Sequence[Revision], as_of: datetime | None) -> Memory:
    """Raises InvalidRequestError if it did not hold then."""
    was = memory if as_of is None else as_it_was(memory, revisions, _seconds(as_of))
    if was is None:
        raise InvalidRequestError(f"the memory {memory.id!r} did not hold at that time")
    return was


def _seconds(at: datetime) -> float:
    return at.replace(tzinfo=UTC).timestamp()


def _encoder(name: str | None) -> Encoder:
    from ewe.retrieval.encoders import SentenceEncoder

    return SentenceEncoder(name)
