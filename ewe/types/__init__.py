"""Plain data that every layer may hold: passages, claims, sentences, generations."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

from ewe.errors import InvalidRequestError
from ewe.types.sampling_params import MemoryOptions as MemoryOptions

FinishReason = Literal["stop", "length", "abort", "timeout", "error"]


class Verdict(StrEnum):
    """What checking found about a claim or a sentence. Only `REFUTED` causes a rewrite."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_CHECKED = "not_checked"

    @classmethod
    def of_all(cls, verdicts: Set[Self]) -> Self:
        """Refuted if any is; supported if all are; not_checked without any; else inconclusive."""
        if not verdicts:
            return cls.NOT_CHECKED
        if cls.REFUTED in verdicts:
            return cls.REFUTED
        return cls.SUPPORTED if verdicts == {cls.SUPPORTED} else cls.INCONCLUSIVE


class Lane(StrEnum):
    """The two first-in-first-out lanes of a working memory."""

    RETRIEVAL = "retrieval"
    VERIFICATION = "verification"


@dataclass(frozen=True, slots=True)
class Passage:
    """One text with its origin.

    veracity is how far the source can be believed, in [0, 1]; 0 keeps the passage out of memory. metadata: further
    fields by name, as JSON has them; `retrieval.filters.where` asks for their values.
    Raises InvalidRequestError for a veracity outside [0, 1] or a text that is not a string.
    """

    id: str
    text: str
    title: str = ""
    source: str = ""
    url: str = ""
    date: str = ""
    veracity: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidRequestError(f"passage {self.id!r}: text must be a string, got {type(self.text).__name__}")
        if not 0.0 <= self.veracity <= 1.0:
            raise InvalidRequestError(f"passage {self.id!r}: veracity must lie in [0, 1], got {self.veracity}")


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage with the retriever's own score (higher is better); owner: whose alone it is, empty for all."""

    passage: Passage
    score: float
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """What a request looks for: passages (None: as many as the settings say), beside them long-term memories."""

    text: str
    memory: MemoryOptions = field(default_factory=MemoryOptions)
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that speaks for or against a claim.

    excerpt is the sentence of the passage that decides; score in [0, 1] is the judge's confidence in the stance. claim
    is the text of the claim that it speaks to; where that is empty, it backs the verdict of every claim that lists its
    passage.
    """

    passage: Passage
    stance: Verdict
    score: float
    excerpt: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A checkable statement; start and end are code points of the sentence it was taken from.

    support: how much of the evidence's weight supports it, in [0, 1], whatever the verdict; 0 where nobody weighed it.
    reason: why it is refuted although no passage contradicts it; empty otherwise.
    """

    text: str
    start: int = 0
    end: int = 0
    verdict: Verdict = Verdict.NOT_CHECKED
    score: float = 0.0
    evidence_ids: tuple[str, ...] = ()
    support: float = 0.0
    reason: str = ""


class SentenceClaims(list[Claim]):
    """The claims of one sentence; reason: why there are none ("question"), where it is known."""

    def __init__(self, claims: Iterable[Claim] = (), reason: str = "") -> None:
        super().__init__(claims)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class VerificationRequest:
    """One sentence to check.

    preceding: the text before it (for pronouns); following: the next sentence, empty while it is not written yet.
    closed_world: whether what the datastore does not bear is refuted as unsupported; None: as the verifier was made.
    """

    prompt: str
    preceding: str
    sentence: str
    following: str = ""
    closed_world: bool | None = None


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """Claims with their verdicts, the evidence behind them, and notes on how they came about.

    reason: why the sentence holds no claim ("question"), where it is known.
    """

    claims: tuple[Claim, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """Refuted if any claim is; supported if all claims are; not_checked without claims; else inconclusive."""
        return Verdict.of_all({claim.verdict for claim in self.claims})

    @property
    def score(self) -> float:
        """Share of supported claims in [0, 1]; 0 without claims."""
        supported = sum(claim.verdict is Verdict.SUPPORTED for claim in self.claims)
        return supported / len(self.claims) if self.claims else 0.0


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
    the answer was discarded.
    """

    prompt_tokens: int = 0
    tokens_kept: int = 0
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
    "error". tool_calls: the calls that a chat with tools has written; they are no part of `text`.
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

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy."""
        return asdict(self)
