"""`ewe agent`: a question answered in steps of thought and action, over memories and passages."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options
from ewe.cli.engine import open_llm, settings_of
from ewe.cli.terminal import clean
from ewe.config import Config
from ewe.engine.startup.preflight import preflight
from ewe.longterm.commands.memory_options import EncoderName, JudgeName, OneJSON, Owner
from ewe.longterm.commands.memory_write import open_service
from ewe.open_datastore import open_datastore

if TYPE_CHECKING:
    from ewe.llm import LLM


@dataclass(frozen=True, slots=True)
class Library:
    """What an agent may search."""

    memories: Annotated[
        str | None, typer.Option(help="The folder of long-term memories, or a postgresql:// URL.", show_default=False)
    ] = None
    judge: JudgeName = "builtin"
    encoder: EncoderName = None
    datastore: options.Datastore = None


def agent(
    question: Annotated[str, typer.Argument(help="The question.", show_default=False)],
    *,
    model: Annotated[
        str, typer.Option(help="The agent's model: openai:MODEL@URL, or a model for the engine.", show_default=False)
    ],
    library: Library,
    owner: Owner,
    max_steps: Annotated[int, typer.Option(min=1, help="Maximum number of steps, including the answer.")] = 8,
    settings: options.Settings = None,
    as_json: OneJSON = False,
) -> None:
    """Answer a question in steps, with searches of memories and passages. Exit code 1 without an answer."""
    from ewe.longterm.agent import VeriMemAgent
    from ewe.text.jsonable import jsonable

    config = Config().override(settings or ())
    with ExitStack() as opened:
        thinker = _thinker(opened, model, settings)
        memories = None
        if library.memories is not None:
            memories = opened.enter_context(open_service(library.memories, library.judge, library.encoder))
        lookup, _ = open_datastore(library.datastore, config.retrieval)
        helper = VeriMemAgent(thinker, memories, lookup=lookup, name=owner.agent, max_steps=max_steps)
        result = helper.run(question, owner.user)
    print(json.dumps(jsonable(result), ensure_ascii=False) if as_json else clean(result.transcript()))
    if result.answer is None:
        raise typer.Exit(1)


def _thinker(opened: ExitStack, model: str, settings: list[str] | None) -> LLM | str:
    """The model of the engine, which neither retrieves nor checks by itself; or the endpoint's name."""
    from ewe.verification.endpoint import is_endpoint

    if is_endpoint(model):
        return model
    config = settings_of(model, None, settings, datastore="none", verifier="none")
    preflight(config)
    return opened.enter_context(open_llm(config))
