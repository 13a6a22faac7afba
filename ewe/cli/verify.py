"""`ewe verify`: texts checked against a datastore or documents.

Owns: the subcommand and its options. Knows what opens a verifier and what runs the check.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ewe.cli import options

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
    judge: Annotated[str | None, typer.Option(help="builtin, values, a folder or hub id, or openai:MODEL@URL.")] = None,
    k: Annotated[
        float | None,
        typer.Option("--k", help="K of VeriScore: supported claims of a full answer.", show_default="the median"),
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the texts.", show_default="UTF-8")] = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    as_json: options.AsJSON = False,
    html: options.HTMLFile = None,
) -> None:
    """Check texts sentence by sentence. Exit status 0: nothing is refuted, 1: something is, 2: an error."""
    from ewe.cli.check_run import CheckRun
    from ewe.cli.texts import files_or_stdin
    from ewe.cli.verifier import open_verifier
    from ewe.errors import InvalidRequestError

    if k is not None and not k > 0:
        raise InvalidRequestError(f"--k must be positive, got {k}")
    sources = files_or_stdin(files)
    opened = open_verifier(config, settings, datastore, documents, judge)
    run = CheckRun(opened.verifier, opened.against, k, as_json, html)
    raise typer.Exit(run.check(sources, prompt, encoding))
