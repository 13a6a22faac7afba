"""Options that several commands of memories share."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import typer

from ewe.longterm.records import Scope

MemoryPlace = Annotated[
    str,
    typer.Argument(help="The folder of the memories, or a postgresql:// URL.", metavar="DIR", show_default=False),
]
OneJSON = Annotated[bool, typer.Option("--json", help="Print JSON.")]
EncoderName = Annotated[
    str | None, typer.Option("--encoder", help="Sentence encoder (folder or hub id).", show_default="the built-in one")
]
Everybody = Annotated[bool, typer.Option("--all", help="Memories of all users and agents.")]
JudgeName = Annotated[str, typer.Option("--judge", help="builtin, base, a folder or hub id, or openai:MODEL@URL.")]
JudgeIfAny = Annotated[
    str | None,
    typer.Option(
        "--judge",
        help="Also compare new memories with this judge: builtin, base, a folder or hub id, or openai:MODEL@URL.",
        show_default="by their words",
    ),
]
AsOf = Annotated[
    datetime | None, typer.Option("--as-of", help="Show the state at this time (UTC).", show_default="now")
]


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memories are meant."""

    user: Annotated[
        str, typer.Option(help="The user; without it, memories that belong to no user.", show_default=False)
    ] = ""
    agent: Annotated[str, typer.Option(help="The agent; without it, any.", show_default=False)] = ""

    @property
    def scope(self) -> Scope:
        """The same as memories name it."""
        return Scope(self.user, self.agent)
