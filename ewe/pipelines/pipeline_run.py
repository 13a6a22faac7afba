"""One answer on its way through a pipeline: its steps become sequences and jobs, their results go back into it."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Sequence as Batch
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ewe.engine.output import record_retrieval, retrieved_passages
from ewe.engine.sequence import Sequence
from ewe.engine.workers import Job, Worker
from ewe.errors import EWEError
from ewe.pipelines.answer import ComposedAnswer
from ewe.pipelines.asking import answer_params, inner_params, seed_of
from ewe.policies.steps import Ask, Decide, Generate, HasTokens, Pipeline, Reply, Retrieve, Step, Verify, Write
from ewe.types import FinishReason, Generation, Passage, Query, VerificationResult
from ewe.types.sampling_params import SamplingParams

if TYPE_CHECKING:
    from ewe.pipelines.driver import PipelineDriver

_SUMMED = (
    "prompt_tokens", "prefix_tokens_encoded", "passes", "decode_s", "refreshes", "units_encoded", "unit_tokens_encoded",
    "units_loaded",
)  # fmt: skip


class Run:
    """Runs a pipeline for one answer. request: the sequence that was asked for; it is never run itself."""

    def __init__(self, request: Sequence, pipeline: Pipeline, engine: PipelineDriver) -> None:
        self.request = request
        self.is_over = False
        self._engine = engine
        self._steps = pipeline.run(request.request.question)
        self._answer = ComposedAnswer(request, engine.encode)
        self._draft: Generation | None = None
        self._num_asked = 0
        self._open = 0

    def resume(self, result: Any = None) -> None:
        """Gives the pipeline a result and goes on to the next step that takes time; an error ends the run."""
        try:
            while not self.is_over:
                deadline = self.request.deadline
                if deadline is not None and time.monotonic() >= deadline:
                    self.end("timeout")
                    return
                try:
                    step = self._steps.send(result)
                except StopIteration as stop:
                    self._conclude(stop.value)
                    return
                result = self._do(step)
                if self._open:
                    return
        except EWEError as error:
            self.end("error", str(error))
        except Exception as error:  # a fault of one pipeline must not end the engine's loop
            self.end("error", f"the policy failed: {type(error).__name__}: {error}")

    def end(self, reason: FinishReason, error: str = "") -> None:
        """Ends the run with what has been written, or else with its draft, if there is one; once more does nothing."""
        if self.is_over:
            return
        source = None
        if self._draft is not None and not self._answer.text and reason == "timeout":
            source = self._draft
            self._answer.adopt(source)
        self._finish(reason, error, source)

    def _do(self, step: Step) -> Any:
        """Does a step; opens what takes time, and returns the result of anything else."""
        if isinstance(step, Write):
            self._answer.add(step)
            if self._answer.is_full:
                self.end("stop")
        elif isinstance(step, Decide):
            self.request.record("decision", about=step.about, **step.data)
        elif isinstance(step, HasTokens):
            return self._engine.has_tokens(step.names)
        elif isinstance(step, Generate):
            return self._generate(step)
        elif isinstance(step, Retrieve):
            return self._retrieve(step)
        else:
            return self._verify(step)
        return None

    def _generate(self, step: Generate) -> list[Reply]:
        sequences = self._build(step)
        if sequences is None:
            self.end("length")  # the answer is as long as it may be
            return []
        found: dict[int, Reply] = {}
        self._open = len(sequences)
        for place, sequence in enumerate(sequences):
            self._engine.add(sequence, partial(self._take, step, found, place))
        return []

    def _build(self, step: Generate, is_answer: bool = False) -> list[Sequence] | None:
        """The sequences of what is asked; None if the answer that it goes on with is full."""
        built = []
        for ask in step.asks:
            params = self._params(ask, is_answer)
            if params is None:
                return None
            built.append(self._engine.build(self.request, ask, params))
        for sequence, passages in built:
            sequence.arrived = self.request.arrived
            self.request.sources.update({passage.id: passage for passage in passages})
        self.request.record(
            "asking",
            step=step.name,
            prompts=[ask.text or "" for ask in step.asks],
            passages=[[passage.id for passage in passages] for _, passages in built],
        )
        return [sequence for sequence, _ in built]

    def _params(self, ask: Ask, is_answer: bool) -> SamplingParams | None:
        self._num_asked += 1
        seed = seed_of(self.request.request.seed, self.request.index, self._num_asked)
        if not is_answer and ask.text is not None:
            return inner_params(self.request.request.params, ask, seed)
        num_written = len(self._engine.encode(ask.begin)) if ask.begin else 0
        return answer_params(self.request.request.params, ask, num_written, seed)

    def _take(self, step: Generate, found: dict[int, Reply], place: int, reply: Reply) -> None:
        """Called with each reply of a step; the last one resumes the pipeline."""
        found[place] = reply
        generation = reply.generation
        assert generation is not None
        stats = self.request.stats
        for name in _SUMMED:
            setattr(stats, name, getattr(stats, name) + getattr(generation.stats, name))
        stats.tokens_discarded += generation.stats.tokens_kept
        self._open -= 1
        if self._open or self.is_over:
            return
        replies = [found[number] for number in range(len(found))]
        generations = [item.generation for item in replies if item.generation is not None]
        self.request.record(
            "answered",
            step=step.name,
            texts=[item.text for item in generations],
            num_tokens=[len(item.token_ids) for item in generations],
        )
        for item, ask in zip(generations, step.asks, strict=True):
            if ask.text is None and not ask.begin:
                self._draft = item
        failed = next((item for item in generations if item.finish_reason in ("error", "abort", "timeout")), None)
        if failed is not None:
            self.end(failed.finish_reason, failed.error)
        else:
            self.resume(replies)

    def _submit(self, worker: Worker, payloads: Batch[Any], read: Callable[[list[Job]], Any]) -> None:
        """Opens a job per payload; what `read` makes of all of them, when they have ended, is the step's result."""
        jobs: list[Job] = []

        def collect() -> None:
            self._open -= 1
            if not self._open and not self.is_over:
                self.resume(read(jobs))

        self._open = len(payloads)
        jobs += [self._engine.submit(worker, payload, self.request, collect) for payload in payloads]

    def _retrieve(self, step: Retrieve) -> list[tuple[Passage, ...]]:
        worker = self._engine.retrieval
        if worker is None:
            return [()] * len(step.queries)
        for text in step.queries:
            self.request.record("retrieving", query=text)
        memory = self.request.request.memory
        self._submit(worker, [Query(text, memory, step.top_k) for text in step.queries], self._found)
        return []

    def _found(self, jobs: list[Job]) -> list[tuple[Passage, ...]]:
        """The passages of finished retrievals, which go into the trace."""
        request, found = self.request, []
        waited_s = request.stats.retrieval_wait_s + max(job.latency_s for job in jobs)
        for job in jobs:
            hits = retrieved_passages(job, self._engine.threshold)
            record_retrieval(request, job, hits)
            found.append(tuple(hit.passage for hit in hits))
        request.stats.retrieval_wait_s = waited_s  # they ran side by side
        return found

    def _verify(self, step: Verify) -> list[VerificationResult]:
        worker = self._engine.verification
        if worker is None:
            return [VerificationResult(notes=("no verifier",))] * len(step.requests)
        closed_world = self.request.request.asked.closed_world
        self._submit(worker, [[replace(one, closed_world=closed_world) for one in step.requests]], self._checked)
        return []

    def _checked(self, jobs: list[Job]) -> list[VerificationResult]:
        """The results of a finished check, each with the reason if it failed."""
        [job] = jobs
        stats = self.request.stats
        stats.verifications += 1
        stats.verification_wait_s += job.latency_s
        self._answer.latency_s = job.latency_s
        results: list[VerificationResult] = job.result
        return [VerificationResult(notes=(job.error,))] * len(job.payload) if job.error else results

    def _conclude(self, end: Ask | Reply | FinishReason) -> None:
        """Makes the answer of what the pipeline has returned."""
        if isinstance(end, Ask):
            sequences = self._build(Generate("answer", (end,)), is_answer=True)
            assert sequences is not None
            assert not end.begin, "an answer that goes on is not streamed from its beginning"
            [sequence] = sequences
            for name in ("index", "listener", "sources", "evidence", "trace", "stats"):
                setattr(sequence, name, getattr(self.request, name))
            asked = self.request.request
            sequence.request = replace(sequence.request, prompt=asked.prompt, memory=asked.memory)
            self.is_over = True
            self._engine.add(sequence, None)
        elif isinstance(end, Reply):
            assert end.generation is not None
            self._answer.adopt(end.generation)
            self._finish(end.finish_reason, source=end.generation)
        else:
            self._finish(end)

    def _finish(self, reason: FinishReason, error: str = "", source: Generation | None = None) -> None:
        self.is_over = True
        self._steps.close()
        self._engine.deliver(self.request, self._answer.close(reason, error, source))
