"""`ewe verify`: texts checked against a datastore or documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options

if TYPE_CHECKING:
    from ewe.types import Verdict

_EVIDENCE = "What to check against"


def verify(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="Texts, or .jsonl files with one per line; - or nothing reads standard input."
        ),
    ] = None,
    datastore: Annotated[
        str | None,
        typer.Option(rich_help_panel=_EVIDENCE, help="A folder of `ewe index build`, a .jsonl file, or builtin."),
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_EVIDENCE, help="A document, folder or pattern to check against. Repeatable."),
    ] = None,
    prompt: Annotated[str, typer.Option(help="What the texts answer; pronouns may stand for names in it.")] = "",
    judge: Annotated[
        str | None, typer.Option(help="builtin, base, values, a folder or hub id, or openai:MODEL@URL.")
    ] = None,
    k: Annotated[
        float | None,
        typer.Option("--k", help="K of VeriScore: supported claims of a full answer.", show_default="the median"),
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the texts.", show_default="UTF-8")] = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    as_json: options.AsJSON = False,
    html: options.HTMLFile = None,
    expect: Annotated[str | None, typer.Option(help="supported or refuted: what all claims should be.")] = None,
    export_errors: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Adds the calls that are not as --expect says, as pairs to train a judge."),
    ] = None,
) -> None:
    """Check texts sentence by sentence. Exit status 0: nothing is refuted, 1: something is, 2: an error."""
    from ewe.cli.check_run import CheckRun
    from ewe.cli.texts import files_or_stdin
    from ewe.cli.verifier import open_verifier
    from ewe.errors import InvalidRequestError

    if k is not None and not k > 0:
        raise InvalidRequestError(f"--k must be positive, got {k}")
    expected = _expected(expect, export_errors)
    sources = files_or_stdin(files)
    opened = open_verifier(config, settings, datastore, documents, judge)
    run = CheckRun(opened.verifier, opened.against, k, as_json, html, expected, export_errors)
    raise typer.Exit(run.check(sources, prompt, encoding))


def _expected(expect: str | None, export_errors: Path | None) -> Verdict | None:
    """What --expect names; raises InvalidRequestError for another word, and where one option lacks the other."""
    from ewe.errors import InvalidRequestError
    from ewe.types import Verdict

    if (expect is None) != (export_errors is None):
        raise InvalidRequestError("--expect and --export-errors go together: what the claims should be, and where to")
    if expect not in (None, Verdict.SUPPORTED, Verdict.REFUTED):
        raise InvalidRequestError(f"--expect must be supported or refuted, got {expect!r}")
    return None if expect is None else Verdict(expect)
