"""Chat models as an agent asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ewe.errors import ConfigError
from ewe.sampling import SamplingParams
from ewe.types import MemoryOptions
from ewe.verification.endpoint import open_endpoint
from ewe.verification.endpoint.protocol import Completer, CompletionError, LocalCompleter

if TYPE_CHECKING:
    from ewe.llm import LLM

STOP = ("\nObservation:",)
"""Where a model is made to stop: what follows would be an observation of its own making."""
_PARAMS = SamplingParams(max_tokens=1024, stop=STOP)


def as_completer(model: LLM | Completer | str, params: SamplingParams | None = None) -> Completer:
    """What answers the prompts of an agent.

    model: an `LLM` (asked through its chat template, if it has one), any completer, or "openai:MODEL@URL". params: for
    an `LLM`; by default 1,024 tokens, greedy, up to an observation. Raises ConfigError for anything else.
    """
    if isinstance(model, str):
        return open_endpoint(model, STOP)
    if isinstance(model, Completer):
        return model
    from ewe.llm import LLM

    if not isinstance(model, LLM):
        raise ConfigError(f"an agent's model is an LLM, a completer or 'openai:MODEL@URL', got {type(model).__name__}")
    return engine_completer(model, params or _PARAMS)


def engine_completer(llm: LLM, params: SamplingParams) -> Completer:
    """An `LLM` as a completer; raises CompletionError where it fails, or is cut at its limit of tokens.

    Memories reach the model as observations, and a step is no fact to learn: the engine's own memories stay out of it.
    """
    apart = MemoryOptions(scope="none") if llm.config.longterm.path is not None else None

    def ask(prompt: str) -> str:
        if llm.has_chat_template:
            [answer] = llm.chat([{"role": "user", "content": prompt}], params, memory=apart)
        else:
            [answer] = llm.generate(prompt, params, memory=apart)
        if answer.finish_reason != "stop":
            told = answer.error or f"it ended with {answer.finish_reason!r} after {params.max_tokens} tokens at most"
            raise CompletionError(f"the model wrote no whole step: {told}")
        return answer.text

    def generate(prompts: Sequence[str]) -> list[str]:
        return [ask(prompt) for prompt in prompts]

    return LocalCompleter(generate)
