"""`ewe eval`: decoding policies measured, and how a model reads its memory."""

from __future__ import annotations

import typer

from ewe.cli.eval_factuality import factuality, world
from ewe.cli.eval_memory import memory
from ewe.cli.eval_qa import qa
from ewe.cli.eval_run import report

eval_app = typer.Typer(no_args_is_help=True, help="Measure decoding policies, and how memory is read.")


@eval_app.callback()
def evaluations() -> None:
    """Measure decoding policies, and how a model reads its memory."""


for command in (factuality, world, report, qa, memory):
    eval_app.command()(command)
