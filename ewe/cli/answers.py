"""How answers are shown: while they are written, or when they are there; and what is said of an empty one."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ewe.cli.asking import Asker
from ewe.cli.prompts import Prompt
from ewe.cli.run_view import RunView
from ewe.cli.terminal import answer_text, clean, follow, output_console, summary
from ewe.cli.text_view import text_view
from ewe.types import Generation

if TYPE_CHECKING:
    from ewe.engine.stream_events import StreamEvent


def show_stream(events: Iterable[StreamEvent], checked: bool) -> Generation:
    """Draws a stream and returns what it ends with. Raises EWEError if the generation failed.

    A terminal gets one sentence per line with its verdict, and what was taken back, if sentences are checked; running
    text otherwise, the draft dim. A pipe or a file gets the text and nothing else.
    """
    console = output_console()
    if not (checked and console.is_terminal):
        with text_view(console) as view:
            return follow(events, view)
    with RunView(console) as view:
        generation = follow(events, view)
    _print_summary(generation)
    return generation


def print_answer(prompt: Prompt, generation: Generation) -> None:
    """One of many answers under its prompt: plain text where a program reads, marks and a summary in a terminal."""
    console = output_console()
    print(f"> {clean(prompt.text)}")
    if console.is_terminal:
        console.print(answer_text(generation) if generation.text.strip() else "[bright_black](empty answer)[/]")
        _print_summary(generation)
    else:
        print(generation.text)
    print()
    sys.stdout.flush()


def _print_summary(generation: Generation) -> None:
    if text := summary(generation):
        output_console().print(text, style="bright_black", markup=False)


def why_empty(generation: Generation, asker: Asker) -> str:
    """Why an answer holds no text, and what to try; empty if it holds some, or failed."""
    if generation.text.strip() or generation.finish_reason == "error":
        return ""
    if generation.stats.tokens_discarded:
        return "all that it wrote was refuted; --set feedback.on_exhausted=flag keeps such sentences, marked"
    if generation.finish_reason != "stop":
        return f"it ended with {generation.finish_reason!r}; raise --max-tokens or --deadline-s"
    if len(generation.token_ids) > 1:
        return "it began with a --stop text, or held white space only; try other --stop texts or another prompt"
    if asker.chats:
        return "the model ended at once; try another prompt, --min-tokens 20 or --temperature 0.7"
    if asker.llm.has_chat_template:
        return "the model ended at once; it is a chat model: try without --raw"
    return "the model ended at once; it has no chat template and goes on with a text: begin one, or try --min-tokens 20"
