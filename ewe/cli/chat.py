"""`ewe chat`: a conversation in the terminal, every sentence with its verdict.

Owns: the loop. Knows `LLM.stream`.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

import typer

from ewe.cli import options


def chat(
    ctx: typer.Context,
    model: options.Model = None,
    datastore: options.Datastore = None,
    verifier: options.Verifier = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    max_tokens: options.MaxTokens = 256,
    temperature: options.Temperature = 0.0,
    seed: options.Seed = None,
) -> None:
    """Talk to a chat model. An empty line or Ctrl-D ends it."""
    from ewe.cli.engine import open_llm, settings_of
    from ewe.cli.live_text import text_view
    from ewe.cli.terminal import answer_text, follow, output_console
    from ewe.llm import question_of

    params = options.sampling_params(ctx.params)
    chosen = settings_of(config, settings, model=model, datastore=datastore, verifier=verifier)
    console = output_console()
    messages: list[dict[str, str]] = []
    with open_llm(chosen) as llm:
        while line := _ask():
            messages.append({"role": "user", "content": line})
            prompt, question = llm.apply_chat_template(messages), question_of(messages)
            events = llm.stream(prompt, params, add_special_tokens=False, question=question)
            with text_view(console) if console.is_terminal else nullcontext() as view:
                generation = follow(events, view)
            messages.append({"role": "assistant", "content": generation.text})
            if view is None:
                console.print(answer_text(generation))


def _ask() -> str:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
