"""Requests at the border: prompts, parameters and documents become sequences, or a clear error."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property, partial

from ewe.engine.answer_text.output_text import OutputText
from ewe.engine.answer_text.reasoning import reasoning_after
from ewe.engine.evidence.sentence_checks import fields_of
from ewe.engine.inputs.request_tokenizer import RequestTokenizer
from ewe.engine.kvcache.block_manager import BlockManager
from ewe.engine.kvcache.block_table import BlockTable
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.request import Request, TokenizedRequest
from ewe.engine.sampling.grammar import Grammar, Grammars
from ewe.engine.sequence import Sequence
from ewe.engine.units.working_memory import WorkingMemory
from ewe.text.reasoning_marks import ReasoningMarks, reasoning_marks
from ewe.text.sentences import SentenceSplitter
from ewe.types import Lane, ScoredPassage
from ewe.types.sampling_params import SamplingParams

_SAMPLING = tuple(item.name for item in fields(SamplingParams))


@dataclass(eq=False)
class InputProcessor(RequestTokenizer):
    """Builds sequences for one engine."""

    block_manager: BlockManager
    memory_manager: MemoryManager
    grammars: Grammars
    _splitter: SentenceSplitter = field(default_factory=SentenceSplitter, init=False)

    def build(self, request_id: str, request: Request) -> Sequence:
        """The sequence of a request; with n > 1 its `siblings` are the further answers. Raises as `prepare` does."""
        return self.sequence(self.prepare(request_id, request))

    def sequence(self, tokenized: TokenizedRequest) -> Sequence:
        """The same of one that is prepared; raises InvalidRequestError for a grammar or documents that will not do."""
        request = tokenized.original
        grammar = self._grammar(request)
        first, *others = [self._sequence(tokenized, index, grammar) for index in range(request.params.n)]
        first.siblings = others
        first.record(
            "start",
            prompt=tokenized.prompt,
            num_prompt_tokens=tokenized.num_prompt_tokens,
            policy=self.config.policy,
            settings=self.config.model_dump(mode="json"),
            engine=self.limits.engine,
            sampling={**fields_of(request.params, *_SAMPLING), "seed": tokenized.seed},
            closed_world=request.closed_world,
        )
        documents = [ScoredPassage(passage, 0.0) for passage in tokenized.passages]
        self.memory_manager.plan(first, documents, Lane.RETRIEVAL, required=True)
        return first

    @cached_property
    def _reasoning_marks(self) -> ReasoningMarks | None:
        return reasoning_marks(self.tokenizer)  # which looks through all added tokens

    def _sequence(self, request: TokenizedRequest, index: int, grammar: Grammar | None) -> Sequence:
        original, params, memory = request.original, request.params, self.config.memory
        marks = self._reasoning_marks if original.reasons else None
        reasoning = reasoning_after(marks, self.tokenizer, request.prompt_ids, original.prefill)
        output_text = OutputText(
            self.tokenizer,
            self._splitter,
            request.prompt_ids,
            params.stop,
            params.min_tokens,
            original.tools,
            original.kept,
            is_watched=original.listener is not None and original.on_tokens is None,
            reasoning=reasoning,
            prefill=original.prefill,
        )
        on_tokens = original.on_tokens if reasoning is None and not output_text.may_be_cut else None
        return Sequence(
            request=request,
            index=index,
            output_text=output_text,
            table=BlockTable(self.block_manager),
            memory=WorkingMemory(memory.retrieval_units, memory.verification_units, memory.refresh == "lowest_score"),
            listener=original.listener,
            on_tokens=on_tokens and partial(on_tokens, index),
            grammar=grammar and grammar.copy(),
        )

    def _grammar(self, request: Request) -> Grammar | None:
        tools, params = request.tools, request.params
        lark = tools.grammar if tools is not None and tools.grammar is not None else params.grammar
        if lark is not None:
            return self.grammars.of_lark(lark)
        return None if params.json_schema is None else self.grammars.of_schema(params.json_schema)
