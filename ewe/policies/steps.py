"""The language of pipelines: what one asks of the engine, and what it is told."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ewe.types import FinishReason, Generation, Passage, VerificationRequest, VerificationResult


@dataclass(frozen=True, slots=True)
class Ask:
    """Something that the model is to write.

    text: what it is told, in a turn of its own; None: the request's prompt. passages: stand in the prompt where memory
    would stand, the best first; the last ones are left out where they leave no room. begin: how the text begins; only
    what follows is written. max_tokens: None for as many as the request's answer may still have. top_logprobs: how many
    of the likeliest tokens the reply names. attention: whether it tells how its text was read. What is asked with the
    request's prompt is drawn under all of its sampling parameters, anything else with its temperature, top_p, top_k and
    min_p. frame: follows `begin`, with the passages at its {passages} instead of where memory would stand. sentence:
    how the sentence began that `begin` ends in ("" if it has yet to begin): the text goes on until that has surely
    ended; None: to its limit. shared: the words up to whose end other prompts begin like this one ("": up to the end of
    the passages), which is then encoded once; None: nothing is shared. kept: special tokens that stay in the text.
    """

    text: str | None = None
    passages: tuple[Passage, ...] = ()
    begin: str = ""
    max_tokens: int | None = None
    top_logprobs: int = 0
    attention: bool = False
    frame: str = ""
    sentence: str | None = None
    shared: str | None = None
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text of T tokens was read while it was written, after a prompt of P tokens.

    prompt: as text, without control tokens. prompt_ends, ends: the code point of prompt and text at which each token
    ends. entropies: nats, per token of the text. weights, received: see `ewe.engine.text_attention.TextAttention`.
    """

    prompt: str
    prompt_ends: tuple[int, ...]
    ends: tuple[int, ...]
    entropies: tuple[float, ...]
    weights: npt.NDArray[np.float32]
    received: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wrote.

    mean_prob: the geometric mean of its tokens' probabilities, up to the end of a sentence that was asked for.
    top_logprobs: per token, {text: natural-log probability}, if asked for; tokens: then, their own texts. generation:
    the same as the engine gave it; None in tests. reading: if it was asked for and a policy's engine keeps it.
    """

    text: str
    finish_reason: FinishReason = "stop"
    mean_prob: float = 1.0
    top_logprobs: tuple[Mapping[str, float], ...] = ()
    tokens: tuple[str, ...] = ()
    generation: Generation | None = None
    reading: Reading | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """Texts to be written side by side; the answer is a list of Reply, in order. name: what they are, for the trace."""

    name: str
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Queries; the answer is, per query, a tuple of at most `top_k` passages, the best first (none if it failed)."""

    queries: tuple[str, ...]
    top_k: int


@dataclass(frozen=True, slots=True)
class Verify:
    """Sentences to check; the answer is a list of VerificationResult, with the reason in `notes` where it failed."""

    requests: tuple[VerificationRequest, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """One sentence goes to the reader, for good, with the white space before it; the answer is None.

    result: what its check found; None: nobody checked it. removed: wordings that were refuted before, each with what
    was found of it.
    """

    text: str
    result: VerificationResult | None = None
    removed: tuple[tuple[str, VerificationResult], ...] = ()


@dataclass(frozen=True, slots=True)
class HasTokens:
    """Whether the model has all of these tokens, by their texts; the answer is a bool."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decide:
    """A decision, for the trace; the answer is None. data: JSON-ready."""

    about: str
    data: Mapping[str, Any] = field(default_factory=dict)


Step = Generate | Retrieve | Verify | Write | Decide | HasTokens
Steps = Generator[Step, Any, Ask | Reply | FinishReason]
"""Ends with an Ask, which makes the answer and is streamed as it is written; with a Reply, which is the answer; or, if
the answer has been written with Write, with the reason for its end."""


class Pipeline(Protocol):
    """One policy. composes: whether the answer is put together with Write, and so has no log-probabilities."""

    composes: bool

    def run(self, question: str) -> Steps:
        """The steps of one answer to the question (of a conversation: the user's last message)."""
