"""Options that the subcommands of `ewe memory` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Store = Annotated[Path, typer.Argument(help="The folder of the memories.", metavar="DIR", show_default=False)]
User = Annotated[str, typer.Option(help="Whose memories; nobody's in particular without it.", show_default=False)]
Agent = Annotated[str, typer.Option(help="With which agent; any without it.", show_default=False)]
AsJSON = Annotated[bool, typer.Option("--json", help="The result as JSON.")]
EncoderName = Annotated[
    str | None, typer.Option("--encoder", help="Sentence encoder (folder or hub id).", show_default="the built-in one")
]
Everybody = Annotated[bool, typer.Option("--all", help="The memories of all users and agents.")]
JudgeName = Annotated[
    str, typer.Option("--judge", help="builtin, base, values, a folder or hub id, or openai:MODEL@URL.")
]
