"""`ewe demo`: one run on the built-in world, as it happens.

Owns: the subcommand and its default prompts. Knows `LLM.stream`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options

if TYPE_CHECKING:
    from ewe.engine.stream_events import StreamEvent

_SECONDS_SHOWN = {"rewind": 0.6, "sentence": 0.2}


def demo(
    prompt: Annotated[str | None, typer.Option(help="Instead of one of the built-in prompts.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random draws; picks the built-in prompt.")] = 0,
    max_tokens: options.MaxTokens = 256,
    pace: Annotated[
        float, typer.Option(help="Most tokens per second shown in a terminal; 0: as fast as they are written.", min=0)
    ] = 30.0,
    as_json: options.AsJSON = False,
    html: options.HTMLFile = None,
    trace: options.TraceFile = None,
    settings: options.Settings = None,
) -> None:
    """Watch the built-in model write, be refuted and write again."""
    from ewe.cli.engine import open_llm, settings_of
    from ewe.cli.run_view import RunView
    from ewe.cli.terminal import clean, follow, output_console, stats_table
    from ewe.report import jsonable, write_page, write_trace
    from ewe.sampling import SamplingParams

    prompts = [prompt] if prompt else builtin_prompts()
    chosen = prompts[seed % len(prompts)]
    params = SamplingParams(max_tokens=max_tokens, seed=seed)
    console = output_console()
    attribution = ["attribution=true"] if html else []
    config = settings_of(assignments=[*attribution, *(settings or ())])
    if not as_json:
        console.print(clean(chosen), style="bold", markup=False)
        console.print()
    with open_llm(config) as llm, nullcontext() if as_json else RunView(console) as view:
        events = llm.stream(chosen, params)
        generation = follow(_paced(events, pace) if pace and console.is_terminal and not as_json else events, view)
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
        console.print(f"\nThe trace is in {html}", markup=False, soft_wrap=True)
    others = [f'  ewe demo --prompt "{other}"' for other in prompts if other != chosen]
    if others:
        console.print("\n".join(["", "Others:", *others[:2]]), markup=False, style="bright_black")


def _paced(events: Iterable[StreamEvent], tokens_per_s: float) -> Iterator[StreamEvent]:
    """The events no faster than a reader can follow; the engine writes on in its own thread and is not held up."""
    due = time.monotonic()
    for event in events:
        if event.kind in _SECONDS_SHOWN or event.kind == "draft":
            due = max(due, time.monotonic()) + _SECONDS_SHOWN.get(event.kind, 1 / tokens_per_s)
        time.sleep(max(0.0, due - time.monotonic()))
        yield event


def builtin_prompts() -> list[str]:
    """Prompts for the built-in model."""
    from ewe.world.builtin import example_prompts

    return example_prompts()
