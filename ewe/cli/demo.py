"""`ewe demo`: one run on the built-in world, or of a real model on real text, as it happens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli import options
from ewe.cli.engine import open_llm, settings_of
from ewe.cli.live_view import LiveView
from ewe.cli.prompt_runner import PromptForm, PromptRunner
from ewe.cli.prompts import Prompt
from ewe.cli.terminal import clean, follow, output_console, stats_table
from ewe.config.setting_names import WIKIPEDIA_SAMPLE
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.evaluation.report import write_page, write_trace
from ewe.text.jsonable import jsonable
from ewe.types import Generation
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.llm import LLM

REAL_PROMPTS = [
    "Who were the Huguenots, and where did they flee?",
    "What was the Apollo program?",
    "Tell me about force.",
]
_REAL = ("smollm2", WIKIPEDIA_SAMPLE)
# As in the built-in setup: what no passage supports is taken back, and left out where no wording does better.
_REAL_SETTINGS = ("model.adapter=memory-reader", "feedback.closed_world=true", "feedback.on_exhausted=drop")
_SECONDS_SHOWN = {"rewind": 0.6, "sentence": 0.2}


def demo(
    prompt: Annotated[str | None, typer.Option(help="Use this prompt instead of a built-in one.")] = None,
    real: Annotated[
        bool, typer.Option("--real", help="A real chat model (`ewe model get smollm2`) on paragraphs of Wikipedia.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed; also selects the built-in prompt.")] = 0,
    max_tokens: options.MaxTokens = 256,
    pace: Annotated[
        float, typer.Option(help="Maximum tokens per second shown in a terminal; 0: unlimited.", min=0)
    ] = 30.0,
    as_json: options.AsJSON = False,
    html: options.HTMLFile = None,
    trace: options.TraceFile = None,
    settings: options.Settings = None,
) -> None:
    """Watch the built-in model, or a real one, write sentences, have some refuted, and rewrite them."""
    from ewe.evaluation.world.builtin import example_prompts

    prompts = [prompt] if prompt else REAL_PROMPTS if real else example_prompts()
    chosen = prompts[seed % len(prompts)]
    params, form = SamplingParams(max_tokens=max_tokens, seed=seed), PromptForm(raw=not real)

    def show(llm: LLM, heading: str) -> Generation:
        events = PromptRunner(llm, form, params).stream(Prompt("demo", chosen))
        return follow(events, None) if as_json else _drawn(events, heading, pace)

    console = output_console()
    given = ["attribution=true"] if html else []
    given += _REAL_SETTINGS if real else ()
    model, datastore = _REAL if real else (None, None)
    config = settings_of(model, None, [*given, *(settings or ())], datastore=datastore)
    if not as_json:
        console.print(clean(chosen), style="bold", markup=False)
        console.print()
    generations, loaded = [], None
    if real:  # one engine after the other: a GPU has room for one pool
        with open_llm(config.model_copy(update={"policy": "plain", "datastore": None, "verifier": "none"})) as llm:
            generations.append(show(llm, "Without memory:"))
            loaded = llm.client.engine.loaded
    with open_llm(config, loaded) as llm:
        generations.append(show(llm, "\nWith memory; what no paragraph supports is taken back:" if real else ""))
    if html:
        write_page(html, generations)
    if trace:
        write_trace(trace, generations)
    if as_json:
        for generation in generations:
            print(json.dumps(jsonable(generation), ensure_ascii=False))
        return
    console.print()
    console.print(stats_table(generations[-1]))
    if html:
        console.print(f"\nThe trace is in {html}", markup=False, soft_wrap=True)
    others = [f'  ewe demo {"--real " if real else ""}--prompt "{other}"' for other in prompts if other != chosen]
    if others:
        console.print("\n".join(["", "Others:", *others[:2]]), markup=False, style="bright_black")


def _drawn(events: Iterable[StreamEvent], heading: str, pace: float) -> Generation:
    """What the engine writes, as it happens, below the heading; pace: most tokens per second that a terminal shows."""
    console = output_console()
    if heading:
        console.print(heading, style="bold")
    with LiveView(console) as view:
        return follow(_paced(events, pace) if pace and console.is_terminal else events, view)


def _paced(events: Iterable[StreamEvent], tokens_per_s: float) -> Iterator[StreamEvent]:
    """The events no faster than a reader can follow; the engine writes on in its own thread and is not held up."""
    due = time.monotonic()
    for event in events:
        if event.kind in _SECONDS_SHOWN or event.kind == "draft":
            due = max(due, time.monotonic()) + _SECONDS_SHOWN.get(event.kind, 1 / tokens_per_s)
        time.sleep(max(0.0, due - time.monotonic()))
        yield event
