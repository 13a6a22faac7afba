"""`ewe verify`: texts checked against a datastore or documents."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ewe.cli import options
from ewe.cli.engine import as_assignments
from ewe.components import open_checker
from ewe.config import Config
from ewe.errors import DatastoreError, InvalidRequestError
from ewe.open_datastore import open_datastore
from ewe.retrieval.datastore import Datastore
from ewe.types import Passage, Verdict
from ewe.types.protocols import Verifier

_evidence = partial(typer.Option, rich_help_panel="What to check against")
_NOTHING = "nothing to check against: give --datastore or --documents"


def verify(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="Texts, documents, .jsonl files with a text per line; - or no file: standard input."
        ),
    ] = None,
    datastore: Annotated[
        str | None, _evidence(help="A datastore built by `ewe index build`, a .jsonl file, or builtin.")
    ] = None,
    documents: Annotated[
        list[str] | None, _evidence(help="A document, folder or pattern to check against. Repeatable.")
    ] = None,
    closed_world: options.ClosedWorld = None,
    prompt: Annotated[
        str, typer.Option(help="The prompt that the texts answer; pronouns may refer to names in it.")
    ] = "",
    judge: Annotated[
        str | None, typer.Option(help="builtin, base, reader, writer, a folder or hub id, or openai:MODEL@URL.")
    ] = None,
    k: Annotated[
        float | None,
        typer.Option(
            "--k",
            help="K of VeriScore: number of supported claims expected of a full answer.",
            show_default="the median",
        ),
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the texts.", show_default="UTF-8")] = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    as_json: options.AsJSON = False,
    html: options.HTMLFile = None,
    expect: Annotated[
        str | None, typer.Option(help="supported or refuted: the expected verdict of all claims.")
    ] = None,
    export_errors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Add judgements that differ from --expect to this file, as pairs to train a judge."
        ),
    ] = None,
) -> None:
    """Check texts sentence by sentence. Exit status 0: nothing is refuted, 1: a sentence is refuted, 2: an error."""
    from ewe.cli.check_run import CheckRun, files_or_stdin

    if k is not None and not k > 0:
        raise InvalidRequestError(f"--k must be positive, got {k}")
    expected = _expected(expect, export_errors)
    sources = files_or_stdin(files)
    verifier, against = open_verifier(config, settings, datastore, documents, judge, closed_world)
    run = CheckRun(verifier, against, k, as_json, html, expected, export_errors)
    raise typer.Exit(run.check(sources, prompt, encoding))


def _expected(expect: str | None, export_errors: Path | None) -> Verdict | None:
    """What --expect names; raises InvalidRequestError for another word, and where one option lacks the other."""
    if (expect is None) != (export_errors is None):
        raise InvalidRequestError("--expect and --export-errors go together: what the claims should be, and where to")
    if expect not in (None, Verdict.SUPPORTED, Verdict.REFUTED):
        raise InvalidRequestError(f"--expect must be supported or refuted, got {expect!r}")
    return None if expect is None else Verdict(expect)


def open_verifier(
    file: Path | None,
    assignments: Sequence[str] | None,
    datastore: str | None,
    documents: Sequence[str] | None,
    judge: str | None,
    closed_world: bool | None = None,
) -> tuple[Verifier, str]:
    """The verifier of a configuration file, changed by the options; where its evidence comes from, in words.

    Raises ConfigError for settings, DatastoreError for evidence, JudgeError for a judge that cannot be had, and
    InvalidRequestError if there is nothing, or too much, to check against.
    """
    if datastore and documents:
        raise InvalidRequestError("give --datastore or --documents, not both: add documents to a datastore instead")
    chosen = as_assignments({"verification.judge": judge, "feedback.closed_world": closed_world})
    config = (Config.from_yaml(file) if file else Config()).override([*chosen, *(assignments or ())])
    source = Datastore(read_evidence(documents)) if documents else datastore or config.datastore
    if source is None:
        raise InvalidRequestError(_NOTHING)
    with Console(stderr=True).status("opening evidence and judge ..."):
        retriever, summary = open_datastore(source, config.retrieval)
        if retriever is None or summary is None:
            raise InvalidRequestError(_NOTHING)
        verifier = open_checker(config, retriever)
    named = ", ".join(documents) if documents else str(source)
    return verifier, f"{named}, searched by {summary.search}"


def read_evidence(sources: Sequence[str]) -> list[Passage]:
    """The passages of documents, folders and patterns, cut as `ewe index build` cuts them; equal ones once.

    Raises DatastoreError naming the file for what does not exist or cannot be read, or if there is no text at all.
    """
    from ewe.retrieval.ingest.chunker import ChunkRules
    from ewe.retrieval.ingest.documents import Problem, ReadOptions
    from ewe.retrieval.ingest.files import find_files
    from ewe.retrieval.ingest.readers import read_blocks
    from ewe.retrieval.ingest.work import Worker, WorkRules

    reading = ReadOptions()
    worker = Worker(WorkRules(reading, ChunkRules(), dedup="off"))
    passages: list[Passage] = []
    for file in find_files(sources, leave_out=Path()).files:
        for block in read_blocks(file, reading):
            outcome = None if isinstance(block, Problem) else worker(block)
            problems = [block] if outcome is None else outcome.problems
            if problems:
                raise DatastoreError(f"cannot read the document {problems[0]}")
            passages += [item.passage for item in outcome.prepared] if outcome else []
    if not passages:
        raise DatastoreError(f"there is no text in {', '.join(sources)}")
    return passages
