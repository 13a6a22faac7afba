"""`ewe memory mcp`: memories for assistants that speak the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from ewe.cli.memory_options import Agent, EncoderName, JudgeName, Store, User


def mcp(
    store: Store,
    user: User = "",
    agent: Agent = "",
    source: Annotated[str, typer.Option(help="Whose word new memories are: a kind, or KIND:ID.")] = "model:mcp",
    reliability: Annotated[float, typer.Option(min=0, max=1, help="How far that source can be believed.")] = 0.5,
    judge: JudgeName = "builtin",
    encoder: EncoderName = None,
) -> None:
    """Serve this user's memories over MCP on standard input and output; makes the store if there is none."""
    from ewe.agent.memory_mcp import MemoryServer, mcp_app
    from ewe.config import LongTermConfig
    from ewe.longterm.factory import open_service
    from ewe.longterm.records import MemorySource
    from ewe.verification.judges.load import load_judge

    kind, _, name = source.partition(":")
    said = MemorySource(kind, name, reliability)
    service = open_service(store, LongTermConfig(), load_judge(judge), encoder=encoder)
    try:
        mcp_app(MemoryServer(service, user, agent, said)).run("stdio")
    finally:
        service.close()
        service.store.close()
