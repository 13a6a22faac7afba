"""`ewe chat`: a conversation in the terminal, every sentence with its verdict."""

from __future__ import annotations

import sys

import typer

from ewe.cli import options


def chat(
    ctx: typer.Context,
    system: options.System = "",
    model: options.Model = None,
    adapter: options.Adapter = None,
    datastore: options.Datastore = None,
    verifier: options.Verifier = None,
    policy: options.Policy = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    max_tokens: options.MaxTokens = 256,
    temperature: options.Temperature = 0.0,
    seed: options.Seed = None,
) -> None:
    """Talk to a chat model. An empty line or Ctrl-D ends it."""
    from ewe.cli.answers import show_stream, why_empty
    from ewe.cli.asking import Asker, PromptForm
    from ewe.cli.engine import open_llm, settings_of
    from ewe.cli.prompts import Prompt
    from ewe.errors import InvalidRequestError

    params = options.sampling_params(ctx.params)
    chosen = settings_of(config, settings, **options.engine_options(ctx.params))
    messages: list[dict[str, str]] = []
    with open_llm(chosen) as llm:
        if not llm.has_chat_template:
            raise InvalidRequestError(f"the model {chosen.model.name!r} has no chat template: use `ewe generate`")
        asker = Asker(llm, PromptForm(system=system), params)
        while line := _ask():
            messages.append({"role": "user", "content": line})
            generation = show_stream(asker.stream(Prompt("chat", line, tuple(messages))), llm.verifies)
            messages.append({"role": "assistant", "content": generation.text})
            if reason := why_empty(generation, asker):
                print(f"(empty answer: {reason})", file=sys.stderr)


def _ask() -> str:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
