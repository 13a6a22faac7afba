"""What a policy asks for beside its answer's own text, and what it is told: further effects of its generator.

Each is answered where it is yielded: `[draft] = yield Generate("draft", (Ask(),))`. The answer waits for it, but no
other does: the texts are sequences of the same engine.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ewe.types import FinishReason, VerificationRequest, VerificationResult

if TYPE_CHECKING:
    from ewe.engine.sequence import Sequence
    from ewe.types import Passage


@dataclass(frozen=True, slots=True)
class Ask:
    """Something that the model is to write.

    text: what it is told, in a turn of its own; None: the request's prompt. passages: stand in the prompt where memory
    would stand, the best first; the last ones are left out where they leave no room. begin: how the text begins; only
    what follows is written. max_tokens: None for as many as the request's answer may still have. top_logprobs: how many
    of the likeliest tokens the reply names. attention: whether it tells how its text was read. What is asked with the
    request's prompt is drawn under all of its sampling parameters, anything else with its temperature, top_p, top_k and
    min_p. temperature: in place of the request's, so that drafts differ. frame: follows `begin`, with the passages at
    its {passages} instead of where memory would stand. sentence: how the sentence began that `begin` ends in ("" if it
    has yet to begin): the text goes on until that has surely ended; None: to its limit. shared: the words up to whose
    end other prompts begin like this one ("": up to the end of the passages), which is then encoded once; None: nothing
    is shared. kept: special tokens that stay in the text.
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
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text of T tokens was read while it was written, after a prompt of P tokens.

    prompt: as text, without control tokens. prompt_ends, ends: the code point of prompt and text at which each token
    ends. entropies: nats, per token of the text. weights, received: see
    `ewe.engine.model_executor.text_attention.TextAttention`.
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
    top_logprobs: per token, {text: natural-log probability}, if asked for; tokens: then, their own texts. reading: if
    it was asked for and the engine keeps it (`Policy.captures`). source: what wrote it; None in tests.
    """

    text: str
    finish_reason: FinishReason = "stop"
    mean_prob: float = 1.0
    top_logprobs: tuple[Mapping[str, float], ...] = ()
    tokens: tuple[str, ...] = ()
    reading: Reading | None = None
    source: Sequence | None = None


@dataclass(frozen=True, slots=True)
class Generate:
    """Texts to be written side by side; the result is a list of Reply, in order. name: what they are, for the trace."""

    name: str
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Queries; the result is, per query, a tuple of at most `top_k` passages, the best first (none if it failed)."""

    queries: tuple[str, ...]
    top_k: int


@dataclass(frozen=True, slots=True)
class VerifyTexts:
    """Sentences to check; the result is a list of VerificationResult, with the reason in `notes` where it failed."""

    requests: tuple[VerificationRequest, ...]


@dataclass(frozen=True, slots=True)
class Add:
    """One sentence goes to the reader, for good, with the white space before it; the policy composes the answer.

    result: what its check found; None: nobody checked it. removed: wordings that were refuted before, each with what
    was found of it.
    """

    text: str
    result: VerificationResult | None = None
    removed: tuple[tuple[str, VerificationResult], ...] = ()


@dataclass(frozen=True, slots=True)
class HasTokens:
    """Whether the model has all of these tokens, by their texts; the result is a bool."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decide:
    """A decision, for the trace. data: JSON-ready."""

    about: str
    data: Mapping[str, Any] = field(default_factory=dict)


SideEffect = Generate | Search | VerifyTexts | Add | HasTokens | Decide
Ending = Ask | Reply | FinishReason | None
"""What a policy returns: an Ask, which makes the answer and is streamed as it is written; a Reply, which is the answer;
why the answer ends that was put together with Add; None: the text goes on by itself."""
Asking = Generator[SideEffect, Any, Ending]
"""The steps of a policy that asks for further texts."""
