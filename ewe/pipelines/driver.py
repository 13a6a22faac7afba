"""Runs pipelines over one engine: generations are its sequences, retrievals and checks jobs of its workers."""

import math
import time
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Batch
from contextlib import suppress
from functools import cache, partial
from typing import Any

from ewe.assembly import Engine
from ewe.config.memory_mark import PlacedPrompt
from ewe.config.registry import PIPELINES
from ewe.engine.core import EngineCore
from ewe.engine.detokenizer import Detokenizer
from ewe.engine.prompt_maker import PromptMaker
from ewe.engine.prompt_passages import fitting
from ewe.engine.request import Prompt, Request
from ewe.engine.sequence import Sequence
from ewe.engine.workers import Job, Worker
from ewe.errors import EngineDeadError, InvalidRequestError, PromptTooLongError
from ewe.pipelines.pipeline_run import Run
from ewe.policies.steps import Ask, Pipeline, Reading, Reply
from ewe.text.tool_calls.use import ToolUse
from ewe.types import Generation, Passage
from ewe.types.sampling_params import SamplingParams

Do = Callable[[Callable[[EngineCore], Any]], None]


class PipelineDriver:
    """All answers of an engine that are under way through its pipeline; called by the engine's thread, but for `check`.

    do: has that thread call something; deliver: takes the finished answers.
    """

    def __init__(
        self, pipeline: Pipeline, engine: Engine, do: Do, deliver: Callable[[Sequence, Generation], None]
    ) -> None:
        assert engine.unit_tokenizer is not None
        self.threshold = engine.config.feedback.retrieval_threshold
        self.deliver = deliver
        self.retrieval, self.verification = engine.retrieval, engine.verification
        self._pipeline = pipeline
        self._engine = engine
        self._do = do
        self._policy = engine.config.policy
        self._timeout_s = engine.config.feedback.timeout
        self._tokenizer = engine.loaded.tokenizer
        self._text_of = cache(lambda token_id: self._tokenizer.decode([token_id]))
        self._prompts = PromptMaker(self._tokenizer, engine.unit_tokenizer, engine.config)
        self._runs: dict[str, list[Run]] = {}
        self._parts: dict[Sequence, Callable[[Reply], None]] = {}

    def check(self, prompt: Prompt, params: SamplingParams, tools: ToolUse | None) -> None:
        """Raises InvalidRequestError for what a request cannot have under this policy."""
        policy = f"policy {self._policy}"
        if not isinstance(prompt, str | PlacedPrompt):
            raise InvalidRequestError(f"{policy} needs the prompt as a text, not as token ids")
        if tools is not None:
            raise InvalidRequestError(f"tools: {policy} asks the model several times and cannot call tools")
        if params.prompt_logprobs is not None:
            raise InvalidRequestError(f"prompt_logprobs: {policy} asks with prompts of its own: leave it out")
        for name in ("logprobs", "json_schema") if self._pipeline.composes else ():
            if getattr(params, name) is not None:
                raise InvalidRequestError(f"{name}: {policy} puts the answer together from several texts: leave it out")

    def start(self, request: Sequence) -> None:
        """Begins a request: each of its `n` answers goes its own way."""
        answers, request.siblings = [request, *request.siblings], []
        for answer in answers[1:]:
            answer.trace.extend(request.trace)
            answer.schedule.pending_units = request.schedule.pending_units
        runs = [Run(answer, self._pipeline, self) for answer in answers]
        self._runs = {name: left for name, held in self._runs.items() if (left := [r for r in held if not r.is_over])}
        self._runs[request.request.id] = runs
        for run in runs:
            run.resume()

    def abort(self, request_id: str) -> None:
        """Ends what is under way for a request; the core ends its sequences."""
        for run in self._runs.pop(request_id, ()):
            run.end("abort")

    def take(self, sequence: Sequence, generation: Generation) -> bool:
        """Hands a finished sequence to its run; returns whether it belonged to one."""
        on_finish = self._parts.pop(sequence, None)
        if on_finish is not None:
            on_finish(self._reply(sequence, generation))
        return on_finish is not None

    def build(self, request: Sequence, ask: Ask, params: SamplingParams) -> tuple[Sequence, tuple[Passage, ...]]:
        """The sequence of an Ask, and the passages in its prompt.

        Passages may take no more than leaves the text its tokens, or half of the context if it may have more. Raises
        InvalidRequestError if the rest of the prompt is too long.
        """
        least = self._engine.input_processor.least_room(params)
        build = partial(self._build, request, ask, params)
        found = fitting(build, ask.passages, least, lambda sequence: sequence.request.max_tokens)
        if found is not None:
            return found
        with suppress(PromptTooLongError):
            return build(()), ()
        raise PromptTooLongError(f"policy {self._policy}: a prompt of its own is too long for the model")

    def _build(self, request: Sequence, ask: Ask, params: SamplingParams, passages: tuple[Passage, ...]) -> Sequence:
        asked = request.request.asked
        assert isinstance(asked.prompt, str | PlacedPrompt)
        if ask.text is None:
            prompt = self._prompts.own(asked.prompt, passages, ask.begin, ask.frame)
            special = asked.add_special_tokens
        else:
            prompt, special = self._prompts.turn(ask.text, passages, ask.begin), not self._prompts.has_template
        documents = [unit.passage for unit in request.schedule.pending_units]
        shared = "" if ask.shared is None else self._prompts.shared(prompt, passages, ask.shared)
        kept = {self._tokenizer.convert_tokens_to_ids(name): name for name in ask.kept}
        inner = Request(
            prompt,
            params,
            documents,
            add_special_tokens=special,
            salt=asked.salt,
            adapter=asked.adapter,
            shared_prefix=shared,
            kept=kept,
        )
        sequence = self._engine.input_processor.build(request.request.id, inner)
        sequence.sentence = ask.sentence
        sequence.wants_attention = ask.attention and self._engine.pool.states is not None
        return sequence

    def add(self, sequence: Sequence, on_finish: Callable[[Reply], None] | None) -> None:
        """Has a sequence run."""
        if on_finish is not None:
            self._parts[sequence] = on_finish
        self._engine.core.add(sequence)

    def submit(self, worker: Worker, payload: Any, request: Sequence, on_done: Callable[[], None]) -> Job:
        """Opens a job that ends in the policy's and the request's time; the engine's thread calls on_done."""
        deadline = math.inf if request.deadline is None else request.deadline
        left_s = max(deadline - time.monotonic(), 0.0)
        return worker.submit(payload, min(self._timeout_s, left_s), partial(self._post, on_done))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text within an answer."""
        return self._engine.input_processor.encode(text, add_special_tokens=False)

    def has_tokens(self, names: Batch[str]) -> bool:
        """Whether each is the text of one token."""
        absent = None, self._tokenizer.unk_token_id
        return all(self._tokenizer.convert_tokens_to_ids(name) not in absent for name in names)

    def _reply(self, sequence: Sequence, generation: Generation) -> Reply:
        """A generation as pipelines read it: the likeliest tokens by their text."""
        top = tuple(self._by_text(scores) for scores in generation.top_logprobs)
        end = None if sequence.sentence is None else sequence.output_text.sentence_end(sequence.sentence)
        logprobs = generation.logprobs[: None if end is None else sequence.output_text.tokens_before(end)]
        mean_prob = math.exp(sum(logprobs) / len(logprobs)) if logprobs else 1.0
        tokens = tuple(map(self._text_of, generation.token_ids)) if top else ()
        reading = self._reading(sequence)
        return Reply(generation.text, generation.finish_reason, mean_prob, top, tokens, generation, reading)

    def _reading(self, sequence: Sequence) -> Reading | None:
        attention, draft = sequence.attention, sequence.output_text
        if attention is None:
            return None
        prompt = Detokenizer(self._tokenizer, ())
        for token_id in sequence.request.prompt_ids:
            prompt.append(token_id)
        return Reading(
            prompt.text,
            tuple(prompt.end_of(number) for number in range(1, len(sequence.request.prompt_ids) + 1)),
            draft.token_ends,
            tuple(token.entropy for token in draft.tokens),
            attention.weights,
            attention.received,
        )

    def _by_text(self, scores: Mapping[int, float]) -> dict[str, float]:
        """Tokens that decode to the same text, like bytes, count together."""
        total: dict[str, float] = {}
        for token_id, logprob in scores.items():
            text = self._text_of(token_id)
            total[text] = total.get(text, 0.0) + math.exp(logprob)
        return {text: math.log(prob) if prob > 0 else -math.inf for text, prob in total.items()}

    def _post(self, on_done: Callable[[], None]) -> None:
        """Has the engine's thread call it; called by a worker's."""
        with suppress(EngineDeadError):  # whoever waits for the answer is told
            self._do(lambda _: on_done())


def open_pipeline(engine: Engine, do: Do, deliver: Callable[[Sequence, Generation], None]) -> PipelineDriver:
    """What runs the engine's policy; do and deliver are `PipelineDriver`'s."""
    settings = engine.config.pipeline
    pipeline = PIPELINES.make(engine.config.policy, settings=settings, **dict(settings))
    return PipelineDriver(pipeline, engine, do, deliver)
