"""What extraction and judging ask of a language model, how it can fail, and a model in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from ewe.errors import EWEError


class CompletionError(EWEError):
    """A model gave no usable answer: unreachable, refused, out of time, or an answer of the wrong shape.

    answers: what became of each prompt of the call, an answer or the error that it met; empty where nothing was tried.
    """

    def __init__(self, message: str, answers: Sequence[str | CompletionError] = ()) -> None:
        super().__init__(message)
        self.answers = tuple(answers)


@runtime_checkable
class Completer(Protocol):
    """Answers prompts with texts; called from a worker thread."""

    def complete(self, prompts: Sequence[str]) -> list[str]:
        """One answer per prompt, in order, without leading or trailing white space.

        Raises CompletionError if any prompt got no usable answer.
        """


def complete_each(completer: Completer, prompts: Sequence[str]) -> list[str | CompletionError]:
    """One answer or error per prompt, in order: a prompt that fails does not take the others with it."""
    try:
        return list(completer.complete(prompts))
    except CompletionError as error:
        if len(error.answers) == len(prompts):
            return list(error.answers)
        return [error] * len(prompts)


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
