"""`ewe demo`: one run on the built-in world, as it happens.

Owns: the subcommand and its default prompts. Knows `LLM.stream`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from ewe.engine.output import StreamEvent
    from ewe.types import Generation

_PROMPTS = 8


def demo(
    prompt: Annotated[str | None, typer.Option(help="Instead of one of the built-in prompts.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random draws; picks the built-in prompt.")] = 0,
    max_tokens: options.MaxTokens = 256,
    as_json: options.AsJSON = False,
    html: options.HTMLFile = None,
    trace: options.TraceFile = None,
    settings: options.Settings = None,
) -> None:
    """Watch the built-in model write, be refuted and write again."""
    from ewe.cli.engine import builtin_settings, open_llm
    from ewe.cli.terminal import output_console, stats_table
    from ewe.report import jsonable, write_page, write_trace
    from ewe.sampling import SamplingParams

    prompts = [prompt] if prompt else builtin_prompts()
    chosen = prompts[seed % len(prompts)]
    params = SamplingParams(max_tokens=max_tokens, seed=seed)
    console = output_console()
    attribution = ["attribution=true"] if html else []
    with open_llm(builtin_settings([*attribution, *(settings or ())])) as llm:
        generation = follow(llm.stream(chosen, params), None if as_json else console, chosen)
    if html:
        write_page(html, [generation])
    if trace:
        write_trace(trace, [generation])
    if as_json:
        print(json.dumps(jsonable(generation), ensure_ascii=False))
        return
    console.print()
    console.print(stats_table(generation))
    if html:
        console.print(f"\nThe trace is in {html}", markup=False)
    for other in [other for other in prompts if other != chosen][:2]:
        console.print(f'\nAnother one: ewe demo --prompt "{other}"', markup=False, style="bright_black")


def follow(events: Iterable[StreamEvent], console: Console | None, prompt: str) -> Generation:
    """Draws a stream on the console, if there is one, and returns what it ends with.

    Raises EngineDeadError if the stream ends without a generation.
    """
    from ewe.cli.run_view import RunView
    from ewe.cli.terminal import clean
    from ewe.errors import EngineDeadError

    view = RunView(console) if console else None
    with view or nullcontext():
        if console:
            console.print(clean(prompt), style="bold", markup=False)
            console.print()
        for event in events:
            if view:
                view.handle(event.kind, event.data)
            if event.generation is not None:
                return event.generation
    raise EngineDeadError("the stream ended without a result")


def builtin_prompts() -> list[str]:
    """Prompts of the built-in world about whose people the model has to be corrected now and then."""
    from ewe.world.builtin import load_world

    world = load_world()
    return [prompt.text for prompt in world.prompts(kinds=("life",))][:_PROMPTS]
