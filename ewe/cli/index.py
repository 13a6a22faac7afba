"""`ewe index`: datastores made from people's own documents."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ewe.cli.index_check import check_command
from ewe.cli.index_precompute import precompute_command
from ewe.cli.index_push import push_command
from ewe.cli.index_report import indexing, reading, tell
from ewe.cli.options import AsJSON, Settings, expand_groups
from ewe.cli.terminal import clean, output_console, print_facts, say
from ewe.config import Config, RetrievalConfig
from ewe.text.words import counted

if TYPE_CHECKING:
    from ewe.retrieval.ingest import Report, Request

index_app = typer.Typer(no_args_is_help=True, help="Build datastores from documents, and search them.")
index_app.command("check")(check_command)
index_app.command("verify", hidden=True)(check_command)
index_app.command("precompute")(precompute_command)
index_app.command("push")(push_command)


_SOURCES = "Files, folders, or patterns in quotes ('notes/**/*.md')."
Sources = Annotated[list[str], typer.Argument(help=_SOURCES, metavar="SRC...", show_default=False)]
Store = Annotated[Path, typer.Argument(help="The folder of the datastore.", metavar="DIR", show_default=False)]
Workers = Annotated[
    int, typer.Option(min=0, max=256, help="Worker processes; 0: one per core, or one for small inputs.")
]
Indexes = Annotated[
    bool, typer.Option("--index/--no-index", help="Also build the indexes; otherwise the first search builds them.")
]
Prune = Annotated[bool, typer.Option("--prune", help="Remove passages of files that were deleted from there.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Only passages whose metadata field has this value, e.g. section=Results. Repeatable: each field must "
        "have one of its values.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How documents are read."""

    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=COLUMN",
            help="Column or JSON key of a passage field, e.g. text=body. Fields: id, text, title, "
            "source, url, date, veracity. Repeatable.",
            show_default=False,
        ),
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of text files without a byte order mark.", show_default="UTF-8")
    ] = None
    source: Annotated[
        str | None, typer.Option(help="Source of documents that name none.", show_default="their path")
    ] = None
    veracity: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Veracity of each source: YAML lines 'source: 0.9', or CSV with source and veracity.",
            exists=True,
            dir_okay=False,
            show_default=False,
        ),
    ] = None

    def request(self, sources: list[str], workers: int) -> Request:
        """What is to be read. Raises DatastoreError for options that cannot be followed."""
        from ewe.retrieval.ingest import ReadOptions, Request, read_sources
        from ewe.retrieval.ingest.fields import parse_columns

        options = ReadOptions(parse_columns(self.column or ()), self.encoding, self.source)
        return Request(tuple(sources), options, read_sources(self.veracity) if self.veracity else {}, workers)


@index_app.command("build")
@expand_groups
def build_command(
    sources: Sources,
    out: Annotated[Path, typer.Option("--out", help="Folder of the new datastore.", show_default=False)],
    documents: ReadingOptions,
    tokens: Annotated[int, typer.Option(help="Maximum tokens per passage.")] = 200,
    overlap: Annotated[int, typer.Option(help="Maximum tokens that a passage repeats from the previous one.")] = 40,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Count tokens with this tokenizer (tokenizer.json, folder, hub id).", show_default="an estimate"
        ),
    ] = None,
    dedup: Annotated[
        Literal["near", "exact", "off"], typer.Option(help="Drop near duplicates, exact duplicates, or nothing.")
    ] = "near",
    workers: Workers = 0,
    indexes: Indexes = True,
    settings: Settings = None,
) -> None:
    """Build a datastore; run again to continue after an interruption. Exit code 1 if something could not be read."""
    from ewe.retrieval.ingest import ChunkRules, build

    request = documents.request(sources, workers)
    rules = ChunkRules(tokens, overlap, tokenizer)
    with reading() as show:
        report = build(out, request, rules, dedup, show)
    _finish(report, out, indexes, settings)


@index_app.command("add")
@expand_groups
def add_command(
    store: Store,
    sources: Sources,
    documents: ReadingOptions,
    prune: Prune = False,
    workers: Workers = 0,
    indexes: Indexes = True,
    settings: Settings = None,
) -> None:
    """Add files, cut like the existing ones. Skips unchanged files, replaces changed ones; run again to continue."""
    from ewe.retrieval.ingest import add

    request = documents.request(sources, workers)
    with reading() as show:
        report = add(store, request, show, prune)
    _finish(report, store, indexes, settings)


@index_app.command("remove")
def remove_command(
    store: Store,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of passages.", metavar="ID", show_default=False)] = None,
    file: Annotated[list[str] | None, typer.Option(help="All passages of this file. Repeatable.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="All passages of this source. Repeatable.")] = None,
) -> None:
    """Remove passages by id, file or source. Exit code 1 if one of these is not found."""
    from ewe.retrieval.ingest.datastore_info import remove

    if not (ids or file or source):
        raise typer.BadParameter("name ids, --file or --source")
    removed, missing = remove(store, ids or (), file or (), source or ())
    print(f"{counted(removed, 'passage')} removed")
    for name in missing:
        say(f"{name} is not in {store}")
    if missing:
        raise typer.Exit(1)


@index_app.command("search")
def search_command(
    store: Annotated[
        str,
        typer.Argument(
            help="Folder of a datastore, or the address that it was pushed to.",
            metavar="DATASTORE",
            show_default=False,
        ),
    ],
    query: Annotated[str, typer.Argument(help="The query.", show_default=False)],
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Maximum number of passages to show.")] = 5,
    where: Where = None,
    settings: Settings = None,
    as_json: AsJSON = False,
) -> None:
    """Find passages, best first. Missing or stale indexes are built first."""
    from ewe.retrieval.open_retriever import open_retriever

    with indexing() as show:
        retriever = open_retriever(store, _retrieval([*_conditions(where), *(settings or ())]), show)
    [results] = retriever.retrieve([query], top_k)
    if as_json:
        hits = [{"score": result.score, **asdict(result.passage)} for result in results]
        print(json.dumps(hits, ensure_ascii=False))
        return
    console = output_console()
    for number, result in enumerate(results, 1):
        passage = result.passage
        console.print(f"{number}. {clean(passage.title or passage.id)}", style="bold", markup=False)
        origin = ", ".join(clean(part) for part in (passage.id, passage.url, passage.date) if part)
        line = f"   {origin}, veracity {passage.veracity:g}, score {result.score:.3f}"
        console.print(line, markup=False, soft_wrap=True)
        if passage.metadata:
            further = ", ".join(f"{key}={value}" for key, value in passage.metadata.items())
            console.print(f"   {clean(further)}", markup=False, soft_wrap=True)
        console.print(clean(passage.text), markup=False)
        console.print()
    if not results:
        print("nothing found")
    console.print(f"searched by {retriever.description}", style="bright_black", markup=False)


@index_app.command("info")
def info_command(store: Store, as_json: AsJSON = False) -> None:
    """Show the contents of a datastore, and what could not be read."""
    from ewe.retrieval.ingest.datastore_info import info

    values = info(store)
    if as_json:
        print(json.dumps(values, ensure_ascii=False))
        return
    print_facts(values)


def _finish(report: Report, store: Path, with_indexes: bool, settings: list[str] | None) -> None:
    """Makes the indexes, then says what came of the files; exit code 1 if there were problems or no passage at all."""
    description = ""
    if with_indexes and report.counts.passages:
        from ewe.retrieval.open_retriever import open_retriever
        from ewe.retrieval.store import PassageStore

        with PassageStore.open(store) as opened, indexing() as show:
            description = open_retriever(opened, _retrieval(settings), show).description
    tell(report, store)
    if description:
        print(f"searched by {description}")
    if report.counts.problems or not report.counts.passages:
        raise typer.Exit(1)


def _conditions(where: list[str] | None) -> list[str]:
    """--where as a setting; values of one field that are given several times are alternatives."""
    values: dict[str, list[str]] = {}
    for condition in where or ():
        key, equals, value = condition.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{condition!r} is not of the form FIELD=VALUE", param_hint="--where")
        values.setdefault(key, []).append(value)
    return [f"retrieval.filters.where={json.dumps(values)}"] if values else []


def _retrieval(settings: list[str] | None) -> RetrievalConfig:
    return Config().override(settings or ()).retrieval
