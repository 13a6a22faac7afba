"""One answer being written: its tokens, its KV, its memory, and what it is waiting for.

Decides nothing: policy runner, rewinder and scheduler change it.
"""

from __future__ import annotations

import time
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ewe.engine.answer_text.output_text import OutputText
from ewe.engine.answer_text.stream_events import TRACED_EVENTS, StreamEvent
from ewe.engine.evidence.sentence_checks import FeedbackState
from ewe.engine.kvcache.block_table import BlockTable
from ewe.engine.policy_state import PolicyState
from ewe.engine.request import TokenizedRequest
from ewe.engine.sampling.grammar import Grammar
from ewe.engine.sampling.sampler import PromptScore, SamplingRow
from ewe.engine.schedule_state import ScheduleState
from ewe.engine.units.working_memory import WorkingMemory
from ewe.types import Evidence, FinishReason, GenerationStats, Passage, TraceEvent

if TYPE_CHECKING:
    from ewe.engine.model_executor.text_attention import TextAttention
    from ewe.engine.policy_runtime.wordings import WordingTask
    from ewe.engine.sampling.neighbours import Neighbours


@dataclass(slots=True, eq=False)
class Sequence:
    """The whole state of one answer.

    index: which of the request's answers it is. output_text: what has been written. table: the context's KV; memory:
    the working memory. grammar: what the text must be, if it is to be JSON. neighbours: what may be copied, where the
    policy copies. settled: how many sentences are final; sent_chars, shown_chars: how much of the text has been sent,
    and shown as a draft, reasoned_chars: of what the model reasoned. on_tokens: who makes drafts of the tokens, of
    which sent_tokens have been told, and also texts if is_final_at_once. prompt_scores: what the model thinks of the
    prompt's tokens, by their place, if that was asked for. prompt_passages: ids of the passages that retrieval has put
    into the prompt. sentence: how a sentence began that the text is to end with; None: it goes on. parent: the answer
    whose policy has asked for this text, if it is no answer itself. wants_attention: whether to note, when it ends,
    what its text attended to; attention: this. wording_task: whose wording it draws; None: it is an answer. is_scored:
    whether its prompt is only scored: others may wait for that, so it goes before them and takes no place. deadline_s:
    seconds that it has; None: no bound.
    """

    request: TokenizedRequest
    index: int
    output_text: OutputText
    table: BlockTable
    memory: WorkingMemory
    policy: PolicyState = field(default_factory=PolicyState)
    feedback: FeedbackState = field(default_factory=FeedbackState)
    schedule: ScheduleState = field(default_factory=ScheduleState)
    siblings: list[Sequence] = field(default_factory=list)
    arrived: float = field(default_factory=time.monotonic)
    grammar: Grammar | None = None
    neighbours: Neighbours | None = None

    listener: Callable[[StreamEvent], None] | None = None
    on_tokens: Callable[[abc.Sequence[int]], None] | None = None
    sent_tokens: int = 0
    is_final_at_once: bool = False
    settled: int = 0
    sent_chars: int = 0
    shown_chars: int = 0
    reasoned_chars: int = 0
    finish: FinishReason | None = None
    error: str = ""
    is_finished: bool = False
    sources: dict[str, Passage] = field(default_factory=dict)
    prompt_passages: frozenset[str] = frozenset()
    evidence: list[Evidence] = field(default_factory=list)
    trace: list[TraceEvent] = field(default_factory=list)
    stats: GenerationStats = field(default_factory=GenerationStats)
    prompt_scores: dict[int, PromptScore] = field(default_factory=dict)
    sentence: str | None = None
    parent: Sequence | None = None
    wants_attention: bool = False
    attention: TextAttention | None = None
    wording_task: WordingTask | None = None
    is_scored: bool = field(init=False)
    deadline_s: float | None = field(init=False)
    _sampling_row: SamplingRow | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.is_scored = bool(self.request.original.label_token_ids)
        self.deadline_s = self.request.params.deadline_s

    @property
    def deadline(self) -> float | None:
        """When the text ends with what it has, in seconds of time.monotonic."""
        return None if self.deadline_s is None else self.arrived + self.deadline_s

    @property
    def num_tokens(self) -> int:
        """Tokens of the context: prompt after the prefix, and text, the placeholder token included."""
        return len(self.request.prompt_ids) + len(self.output_text.ids) + (self.schedule.placeholder is not None)

    @property
    def is_full(self) -> bool:
        """Whether no token can follow the placeholder token: it is the text's last, or a score that is under way."""
        if self.schedule.placeholder is None:
            return False
        return len(self.output_text.ids) + 1 >= self.request.max_tokens or self.is_scored

    @property
    def has_sentence(self) -> bool:
        """Whether the sentence has ended that the text is to end with."""
        if self.wording_task is not None:
            self.output_text.find_sentences()
            return len(self.output_text.sentences) > self.wording_task.sentence
        return self.sentence is not None and self.output_text.sentence_end(self.sentence) is not None

    def tokens(self, begin: int, end: int) -> list[int]:
        """These tokens of the context; 0 stands for the placeholder."""
        split = len(self.request.prompt_ids)
        known = [
            *self.request.prompt_ids[begin : min(end, split)],
            *self.output_text.ids[max(begin - split, 0) : max(end - split, 0)],
        ]
        return known + [0] * (end - begin - len(known))

    def void_placeholder(self) -> None:
        """Takes back the placeholder token, if there is one: the last token before it will be run again."""
        if self.schedule.placeholder is None:
            return
        self.schedule.placeholder.is_void = True
        self.schedule.placeholder = None
        self.forget_ahead()

    def forget_ahead(self) -> None:
        """Drops the KV of all tokens from the last one on, which the next pass has to run."""
        self.table.truncate(min(self.table.length, self.num_tokens - 1))

    def sampling_row(self, eos_token_ids: Iterable[int], retry_temperature: float) -> SamplingRow:
        """How the next token is drawn; retry_temperature: the least one for a sentence that must differ this time.

        The same object as the last time if the token is drawn as the last one was.
        """
        params, ids, row = self.request.original.params, self.output_text.ids, self._sampling_row
        retried = self.feedback.retry_sentence
        is_retry = retried is not None and len(self.output_text.sentences) <= retried
        temperature = max(params.temperature, retry_temperature) if is_retry else params.temperature
        num_placeholders = 0 if self.schedule.placeholder is None else 1
        is_short = len(ids) + num_placeholders < params.min_tokens
        # What a grammar allows changes with every token.
        if (
            row is None or row.output_ids is not ids or row.stream != self.feedback.rewinds or row.banned or is_short
            or row.temperature != temperature or row.num_placeholders != num_placeholders or self.grammar is not None
        ):  # fmt: skip
            banned = (*eos_token_ids, *params.stop_token_ids) if is_short else ()
            row = self._sampling_row = self._new_sampling_row(temperature, banned, num_placeholders)
        return row

    def _new_sampling_row(self, temperature: float, banned: tuple[int, ...], num_placeholders: int) -> SamplingRow:
        request, allowed = self.request, None
        if self.grammar is not None:
            banned, allowed = (), self.grammar.allowed_but(banned)
        return SamplingRow(
            request.original.params,
            request.prefix_ids + request.prompt_ids,
            self.output_text.ids,
            request.seed,
            self.index,
            self.feedback.rewinds,
            temperature,
            banned,
            allowed,
            num_placeholders,
            0 if self.wording_task is None else self.wording_task.wording,
        )

    def end_text(self, stopped: bool) -> None:
        """Ends the text if something stopped it or it is as long as it may be."""
        is_bound = self.sentence is not None or self.wording_task is not None
        if stopped:
            self.finish = "stop"
        elif len(self.output_text.ids) >= self.request.max_tokens or (is_bound and self.has_sentence):
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
