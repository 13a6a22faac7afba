"""`ewe generate` and `ewe chat`: answers to prompts, and a conversation in the terminal."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ewe.cli import options
from ewe.cli.batch import Batch
from ewe.cli.engine import open_llm, settings_of
from ewe.cli.findings_file import run_settings
from ewe.cli.options import sampling
from ewe.cli.prompt_runner import PromptForm, PromptRunner, show_stream, why_empty
from ewe.cli.prompts import Prompt, read_documents, read_prompts
from ewe.errors import InvalidRequestError


def generate(
    ctx: typer.Context,
    engine: options.EngineOptions,
    prompt: Annotated[str | None, typer.Argument(help="The prompt; otherwise --prompts or standard input.")] = None,
    prompts: Annotated[
        Path | None,
        typer.Option(
            help="One prompt per line, or JSONL with prompt or messages (and id).", exists=True, dir_okay=False
        ),
    ] = None,
    system: options.System = "",
    raw: options.Raw = False,
    documents: options.Documents = None,
    as_json: options.AsJSON = False,
    output: options.OutputFile = None,
    html: options.HTMLFile = None,
    trace: options.TraceFile = None,
    max_tokens: options.MaxTokens = 256,
    min_tokens: Annotated[int, sampling(help="Minimum tokens before the text may end.")] = 0,
    temperature: options.Temperature = 0.0,
    top_p: Annotated[float, sampling(help="Nucleus sampling; 1 is off.")] = 1.0,
    top_k: Annotated[int, sampling(help="Sample from the k likeliest tokens; 0 is off.")] = 0,
    min_p: Annotated[float, sampling(help="Minimum probability relative to the likeliest token; 0 is off.")] = 0.0,
    seed: options.Seed = None,
    n: Annotated[int, sampling("-n", "--n", help="Answers per prompt.")] = 1,
    stop: Annotated[list[str] | None, sampling(help="End before this text. Repeatable.")] = None,
    stop_token_ids: Annotated[list[int] | None, sampling(help="End after this token. Repeatable.")] = None,
    ignore_eos: Annotated[bool, sampling("--ignore-eos", help="Continue after the end-of-sequence token.")] = False,
    presence_penalty: Annotated[float, sampling(help="Subtracted from the logit of every token used before.")] = 0.0,
    frequency_penalty: Annotated[float, sampling(help="The same, for each time it was used.")] = 0.0,
    repetition_penalty: Annotated[float, sampling(help="Divides the logits of tokens used before; 1 is off.")] = 1.0,
    logit_bias: options.LogitBias = None,
    logprobs: Annotated[int | None, sampling(help="Log-probabilities of the n likeliest tokens in the JSON.")] = None,
    deadline_s: Annotated[
        float | None, sampling(help="Seconds after which an answer ends, even if incomplete.")
    ] = None,
    json_schema: options.JSONSchema = None,
    grammar: options.Grammar = None,
) -> None:
    """Generate answers to one prompt or to many.

    For chat models the chat template is applied.
    Exit status 0: all prompts were answered, 1: some failed, or all answers are empty, 2: an error.
    """
    params, form = options.sampling_params(ctx.params), PromptForm(raw, system)
    requested, passages = read_prompts(prompt, prompts), read_documents(documents)
    chosen = settings_of(engine.model, engine.config, engine.assignments)
    written_with = run_settings(chosen, params, form, passages) if output else {}
    batch = Batch(requested, params, form, passages, written_with, as_json, output, html, trace)
    if not batch.run(lambda: open_llm(chosen)):
        raise typer.Exit(1)


def chat(
    ctx: typer.Context,
    engine: options.EngineOptions,
    system: options.System = "",
    max_tokens: options.MaxTokens = 256,
    temperature: options.Temperature = 0.0,
    seed: options.Seed = None,
) -> None:
    """Talk to a chat model. An empty line or Ctrl-D ends it."""
    params = options.sampling_params(ctx.params)
    chosen = settings_of(engine.model, engine.config, engine.assignments)
    messages: list[dict[str, str]] = []
    with open_llm(chosen) as llm:
        if not llm.has_chat_template:
            raise InvalidRequestError(f"the model {chosen.model.name!r} has no chat template: use `ewe generate`")
        runner = PromptRunner(llm, PromptForm(system=system), params)
        while line := _ask():
            messages.append({"role": "user", "content": line})
            generation = show_stream(runner.stream(Prompt("chat", line, tuple(messages))), llm.verifies)
            messages.append({"role": "assistant", "content": generation.text})
            if reason := why_empty(generation, runner):
                print(f"(empty answer: {reason})", file=sys.stderr)


def _ask() -> str:
    try:
        return input("> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""
