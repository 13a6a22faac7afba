"""A language model in this process as a completer.

Owns: the check of what a callable returns. Knows the completer's errors; no model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ewe.errors import EWEError
from ewe.verification.endpoint.protocol import CompletionError


class LocalCompleter:
    """Wraps a callable that turns prompts into texts.

    generate: prompts in, one text per prompt out, in order; for an `ewe.LLM`:
    `lambda prompts: [answer.text for answer in llm.generate(prompts, params)]`.
    """

    def __init__(self, generate: Callable[[Sequence[str]], Sequence[str]]) -> None:
        self._generate = generate

    def complete(self, prompts: Sequence[str]) -> list[str]:
        """One stripped answer per prompt; raises CompletionError if the callable fails or gives something else."""
        if not prompts:
            return []
        try:
            answers = list(self._generate(prompts))
        except EWEError as error:
            raise CompletionError(f"the local model failed: {error}") from error
        except Exception as error:  # whatever the caller's model raises
            raise CompletionError(f"the local model failed: {type(error).__name__}: {error}") from error
        if len(answers) != len(prompts) or not all(isinstance(answer, str) for answer in answers):
            raise CompletionError(f"the local model must give {len(prompts)} texts, one per prompt")
        return [answer.strip() for answer in answers]
