"""`ewe chat`: a conversation in the terminal, every sentence with its verdict.

Owns: the loop. Knows `LLM.chat`.
"""

from __future__ import annotations

import sys

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
    from ewe.cli.terminal import answer_text, output_console

    params = options.sampling_params(ctx.params)
    chosen = settings_of(config, settings, model=model, datastore=datastore, verifier=verifier)
    console = output_console()
    messages: list[dict[str, str]] = []
    with open_llm(chosen) as llm:
        while line := _ask():
            messages.append({"role": "user", "content": line})
            [generation] = llm.chat(messages, params)
            messages.append({"role": "assistant", "content": generation.text})
            console.print(answer_text(generation))


def _ask() -> str:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
