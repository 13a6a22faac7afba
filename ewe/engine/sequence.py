"""One answer being written: its tokens, its KV, its memory, and what it is waiting for.

Decides nothing: pauses, rewriter and scheduler change it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Batch
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ewe.engine.grammar import Grammar
from ewe.engine.output_text import OutputText
from ewe.engine.sampling_rows import PlaceholderToken, PromptScore, SamplingRow
from ewe.engine.sentence_checks import Attempt, Check, SentenceState
from ewe.engine.stream_events import TRACED_EVENTS, StreamEvent
from ewe.engine.workers import Job
from ewe.kvcache.block_table import BlockTable
from ewe.kvcache.pool import HostBlocks
from ewe.memory.unit_cache import EncodedUnit
from ewe.memory.unit_text import UnitText
from ewe.memory.working_memory import WorkingMemory
from ewe.placement import PlacedPrompt
from ewe.sampling import SamplingParams
from ewe.types import (
    Evidence,
    FinishReason,
    GenerationStats,
    Lane,
    MemoryOptions,
    Passage,
    TraceEvent,
)

if TYPE_CHECKING:
    from ewe.engine.neighbours import Neighbours
    from ewe.engine.text_attention import TextAttention


@dataclass(frozen=True, slots=True)
class SwappedContext:
    """A context's KV in host memory, and how many tokens it holds."""

    blocks: HostBlocks
    length: int


@dataclass(slots=True, eq=False)
class PendingUnit:
    """A passage on its way into memory; `encoded` holds a reference once its blocks are allocated.

    salt: units of different salts are not shared, though their contents are the same. lane: None for a passage that
    is to be copied from. score: its passage's, by the retriever that found it.
    """

    passage: Passage
    lane: Lane | None
    weight: float
    unit_text: UnitText
    salt: str
    score: float = 0.0
    encoded: EncodedUnit | None = None
    was_cached: bool = False

    def is_new_to(self, others: Iterable[PendingUnit]) -> bool:
        """Whether none of the others holds the same."""
        return all(self.unit_text.token_ids != other.unit_text.token_ids for other in others)


@dataclass(slots=True, eq=False)
class Sequence:
    """The whole state of one answer.

    question: what retrieval and verification are told of the prompt.
    prefix_ids: the prompt up to its memory, which is encoded apart and shared (design 2.6), empty where units are bare;
    prefix: its KV, held while the sequence is admitted and not swapped out. prompt_ids: the rest of the prompt.
    start_position: the rotary position of the rest's first token (design 2.2). draft: what has been written.
    table: the context's KV; memory: the working memory. seed, index, rewinds: what its random stream depends on.
    placeholder: the token after the text's last, while its pass is under way (`InflightBatch`).
    attempts: refuted wordings by the code point at which the sentence starts; dropped: the starts of those left out.
    settled: how many sentences are final.
    hot_sentence: index of the sentence that is drawn at a raised temperature, because its rewind brought no news.
    salt: sequences of different salts share no encoded units. recall: whose long-term memories it may use.
    queued_s: seconds until the first work was done for it.
    asked, add_special_tokens: the prompt as it was given.
    grammar: what the text must be, if it is to be JSON. neighbours: what may be copied, where the policy copies.
    prompt_scores: what the model thinks of the prompt's tokens, by their place, if that was asked for.
    wants_attention: whether to note, when it ends, what its text attended to; attention: this.
    """

    request_id: str
    index: int
    prompt: str
    question: str
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    seed: int
    start_position: int
    max_tokens: int
    output_text: OutputText
    table: BlockTable
    memory: WorkingMemory
    prefix_ids: tuple[int, ...] = ()
    prefix: EncodedUnit | None = None
    listener: Callable[[StreamEvent], None] | None = None
    salt: str = ""
    recall: MemoryOptions = field(default_factory=MemoryOptions)
    asked: str | Batch[int] | PlacedPrompt = ""
    add_special_tokens: bool = True
    grammar: Grammar | None = None
    neighbours: Neighbours | None = None
    prompt_scores: dict[int, PromptScore] = field(default_factory=dict)
    wants_attention: bool = False
    attention: TextAttention | None = None
    siblings: list[Sequence] = field(default_factory=list)
    arrived: float = field(default_factory=time.monotonic)
    queued_s: float = 0.0

    placeholder: PlaceholderToken | None = None
    retrieval: Job | None = None
    rewrite_after_retrieval: int | None = None
    checks: deque[Check] = field(default_factory=deque)
    pending_units: list[PendingUnit] = field(default_factory=list)
    paused_at: float | None = None
    checks_awaited_since: float | None = None
    finish: FinishReason | None = None
    error: str = ""
    is_finished: bool = False
    is_started: bool = False
    is_admitted: bool = False
    swapped: SwappedContext | None = None

    retrieved: int = 0
    verified: int = 0
    settled: int = 0
    sent_chars: int = 0
    shown_chars: int = 0
    states: list[SentenceState | None] = field(default_factory=list)
    attempts: dict[int, list[Attempt]] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    rewinds: int = 0
    hot_sentence: int | None = None

    sources: dict[str, Passage] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    trace: list[TraceEvent] = field(default_factory=list)
    stats: GenerationStats = field(default_factory=GenerationStats)

    @property
    def deadline(self) -> float | None:
        """When the text ends with what it has, in seconds of time.monotonic."""
        return None if self.params.deadline_s is None else self.arrived + self.params.deadline_s

    @property
    def num_prompt_tokens(self) -> int:
        """Tokens of the whole prompt."""
        return len(self.prefix_ids) + len(self.prompt_ids)

    @property
    def num_tokens(self) -> int:
        """Tokens of the context: prompt after the prefix, and text, the placeholder token included."""
        return len(self.prompt_ids) + self.num_drawn

    @property
    def num_drawn(self) -> int:
        """Tokens of the text, the placeholder included."""
        return len(self.output_text) + (self.placeholder is not None)

    @property
    def is_full(self) -> bool:
        """Whether the placeholder token is the last that the text may have."""
        return self.placeholder is not None and self.num_drawn >= self.max_tokens

    @property
    def num_to_run(self) -> int:
        """Tokens whose KV is missing; 1 while decoding."""
        return self.num_tokens - self.table.length

    def tokens_to_run(self, limit: int) -> list[int]:
        """At most `limit` of the tokens whose KV is missing, in order; 0 stands for the placeholder."""
        begin = self.table.length
        end = min(self.num_tokens, begin + limit)
        split = len(self.prompt_ids)
        known = [
            *self.prompt_ids[begin : min(end, split)],
            *self.output_text.ids[max(begin - split, 0) : max(end - split, 0)],
        ]
        return known + [0] * (end - begin - len(known))

    def void_placeholder(self) -> None:
        """Takes back the placeholder token, if there is one: the last token before it will be run again."""
        if self.placeholder is None:
            return
        self.placeholder.is_void = True
        self.placeholder = None
        self.forget_ahead()

    def forget_ahead(self) -> None:
        """Drops the KV of all tokens from the last one on, which the next pass has to run."""
        self.table.truncate(min(self.table.length, self.num_tokens - 1))

    def sampling_row(self, eos_token_ids: Iterable[int], retry_temperature: float) -> SamplingRow:
        """How the next token is drawn; retry_temperature: the least one for a sentence that must differ this time."""
        params = self.params
        hot = self.hot_sentence is not None and len(self.output_text.sentences) <= self.hot_sentence
        too_short = self.num_drawn < params.min_tokens
        banned = (*eos_token_ids, *params.stop_token_ids) if too_short else ()
        return SamplingRow(
            params=params,
            prompt_ids=self.prefix_ids + self.prompt_ids,
            output_ids=self.output_text.ids,
            seed=self.seed,
            index=self.index,
            stream=self.rewinds,
            temperature=max(params.temperature, retry_temperature) if hot else params.temperature,
            banned=banned if self.grammar is None else (),
            allowed=None if self.grammar is None else self.grammar.allowed_but(banned),
            num_placeholders=self.num_drawn - len(self.output_text),
        )

    def end_text(self, stopped: bool) -> None:
        """Ends the text if something stopped it or it is as long as it may be."""
        if stopped:
            self.finish = "stop"
        elif len(self.output_text) >= self.max_tokens:
            self.finish = "length"
        if self.finish is not None:
            self.output_text.finish()
            self.end_span()

    def end_span(self) -> None:
        """Ends what is being copied, with an event."""
        neighbours = self.neighbours
        if neighbours is None or neighbours.span is None:
            return
        span, neighbours.span = neighbours.span, None
        passage = neighbours.passage_of(span.place)
        self.record("span", id=passage, num_tokens=span.length, confidence=span.confidence)

    def state_of(self, index: int) -> SentenceState | None:
        """What is known of a sentence, None while it is open."""
        return self.states[index] if index < len(self.states) else None

    def attempt_at(self, start: int) -> int:
        """Which attempt at the sentence that starts at this code point is the next to be judged, from 1."""
        return len(self.attempts.get(start, ())) + 1

    def set_state(self, index: int, state: SentenceState) -> None:
        """Records what is known of a sentence."""
        self.states.extend([None] * (index + 1 - len(self.states)))
        self.states[index] = state

    def record(self, kind: str, /, **data: Any) -> None:
        """Adds a trace event and passes it to the listener, if the stream shows its kind."""
        elapsed = time.monotonic() - self.arrived
        self.trace.append(TraceEvent(kind, elapsed, len(self.output_text), data))
        if kind in TRACED_EVENTS:
            self.emit(kind, data)

    def emit(self, kind: str, data: Mapping[str, Any], generation: Any = None) -> None:
        """Tells the listener, if there is one."""
        if self.listener is not None:
            self.listener(StreamEvent(kind, data, generation, self.index))
