"""Answers: their sentences, tool calls, counters and traces."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ewe.types.passages import Passage
from ewe.types.verdicts import Claim, Verdict

FinishReason = Literal["stop", "length", "abort", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of the answer with its verdict and history; start and end are code points of `Generation.text`.

    removed: earlier wordings that were refuted and rewritten. attention: share per source id (empty unless asked for).
    reason: why a sentence was not checked. quotes: the id of the passage that it was copied from, word for word.
    """

    text: str
    start: int
    end: int
    verdict: Verdict = Verdict.NOT_CHECKED
    score: float = 0.0
    claims: tuple[Claim, ...] = ()
    source_ids: tuple[str, ...] = ()
    attempts: int = 1
    removed: tuple[str, ...] = ()
    attention: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    quotes: str = ""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing that happened to a request.

    time_s: seconds since the request arrived; num_tokens: generated tokens kept at that moment. docs/streaming.md lists
    the kinds and the keys of `data`.
    """

    kind: str
    time_s: float
    num_tokens: int
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class GenerationStats:
    """Counters of one generation; times in seconds.

    passes, decode_s: forward passes that this request took part in, and their wall time; verification_wait_s and
    retrieval_wait_s are the times in which the request stood still for them. Under a policy that asks several times
    for one answer all but tokens_kept, sentences and total_s are sums over what was asked, and whatever did not become
    the answer was discarded. unit_tokens: of all units that were read; unit_tokens_cached: of those whose keys and
    values were there already. reasoning_tokens: those of tokens_kept that the model reasoned with before it answered.
    """

    prompt_tokens: int = 0
    tokens_kept: int = 0
    reasoning_tokens: int = 0
    tokens_discarded: int = 0
    sentences: int = 0
    rewrites: int = 0
    retrievals: int = 0
    verifications: int = 0
    refreshes: int = 0
    prefix_tokens_encoded: int = 0
    units_loaded: int = 0
    units_encoded: int = 0
    unit_tokens_encoded: int = 0
    unit_tokens: int = 0
    unit_tokens_cached: int = 0
    tokens_copied: int = 0
    passes: int = 0
    decode_s: float = 0.0
    retrieval_wait_s: float = 0.0
    verification_wait_s: float = 0.0
    total_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that an answer asks for; arguments: a JSON object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Generation:
    """One finished answer.

    logprobs: one natural-log probability per token of `token_ids` (of the model's own distribution, before
    temperature and penalties); top_logprobs: per token, {token id: natural-log probability}, if asked for.
    prompt_logprobs, prompt_top_logprobs: the same for the prompt's tokens from the second on, if asked for.
    sources: every passage that was in memory or decided a verdict, by id. error: the message if finish_reason is
    "error". tool_calls: the calls that a chat with tools has written; they are no part of `text`, and neither is
    reasoning: what the model reasoned before it answered.
    """

    prompt: str
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    sentences: tuple[Sentence, ...]
    sources: dict[str, Passage]
    stats: GenerationStats
    trace: tuple[TraceEvent, ...]
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[dict[int, float], ...] = ()
    prompt_logprobs: tuple[float, ...] = ()
    prompt_top_logprobs: tuple[dict[int, float], ...] = ()
    index: int = 0
    error: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy."""
        return asdict(self)
