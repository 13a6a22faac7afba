"""Does what policies ask for beside their answers' own texts: opens sequences and jobs, and makes replies of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ewe.config import FeedbackConfig
from ewe.engine.answer_text.detokenizer import Detokenizer
from ewe.engine.evidence.workers import Job, Worker
from ewe.engine.inputs.side_prompts import SidePrompts
from ewe.engine.output import record_retrieval, retrieved_passages
from ewe.engine.policy_runtime.composed import add_sentence
from ewe.engine.sequence import Sequence
from ewe.engine.side_texts import Add, Ask, Decide, Generate, HasTokens, Reading, Reply, Search, VerifyTexts
from ewe.types import Passage, Query, VerificationResult

_SUMMED = (
    "prompt_tokens", "prefix_tokens_encoded", "passes", "decode_s", "refreshes", "units_encoded", "unit_tokens_encoded",
    "units_loaded", "unit_tokens", "unit_tokens_cached",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SideWork:
    """What an answer waits for. result: made of all of it once it is done; None if it has ended the answer."""

    result: Callable[[], Any]
    texts: tuple[Sequence, ...] = ()
    jobs: tuple[Job, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether nothing of it is under way."""
        return all(text.is_finished for text in self.texts) and all(job.done for job in self.jobs)


@dataclass(eq=False)
class SideRunner:
    """Runs what one policy asks for. started: the texts that the engine has yet to take in."""

    prompts: SidePrompts
    config: FeedbackConfig
    retrieval: Worker | None
    verification: Worker | None
    started: list[Sequence] = field(default_factory=list, init=False)

    def do(self, parent: Sequence, effect: object) -> Any:
        """Does what a policy has yielded; returns the result, or opens the answer's `side` work, which will give it.

        An answer that is full has its `finish` then. Raises PromptTooLongError, and TypeError for what is no effect.
        """
        match effect:
            case Generate(asks=()) | Search(queries=()) | VerifyTexts(requests=()):
                return []
            case Generate():
                self._generate(parent, effect)
            case Search(queries):
                if self.retrieval is None:
                    return [()] * len(queries)
                self._search(parent, self.retrieval, effect)
            case VerifyTexts(requests):
                if self.verification is None:
                    return [VerificationResult(notes=("no verifier",))] * len(requests)
                self._verify(parent, self.verification, effect)
            case Add():
                add_sentence(parent, effect, self.prompts.encode)
            case HasTokens(names):
                return all(self.prompts.token_id(name) is not None for name in names)
            case Decide(about, data):
                parent.record("decision", about=about, **data)
            case _:
                raise TypeError(f"it yielded {effect!r}, which asks for nothing")
        return None

    def take_started(self) -> list[Sequence]:
        """The texts that have been asked for since the last call, but for those that have been ended."""
        started, self.started = self.started, []
        return [sequence for sequence in started if not sequence.is_finished]

    def begin(self, parent: Sequence, ask: Ask) -> None:
        """Makes an Ask the answer's own prompt; raises ValueError if something of the answer is there."""
        if parent.schedule.is_admitted or parent.output_text.text:
            raise ValueError("it returned an Ask, which makes the whole answer, but a part has been written already")
        if ask.begin:
            raise ValueError("it returned an Ask with `begin`: an answer is written from its beginning")
        built = self._build(parent, Generate("answer", (ask,)), is_answer=True)
        assert built is not None
        [source] = built
        before, request = parent.request, source.request
        parent.request = replace(
            request,
            original=replace(before.original, params=request.params, kept=request.original.kept),
            prompt=before.prompt,
            question=before.question,
            memory=before.memory,
        )
        parent.output_text, parent.grammar, parent.sentence = source.output_text, source.grammar, source.sentence
        parent.schedule.pending_units = source.schedule.pending_units
        parent.policy.is_composed = False

    def _generate(self, parent: Sequence, step: Generate) -> None:
        texts = self._build(parent, step)
        if texts is not None:
            parent.policy.side = SideWork(partial(self._replies, parent, step, texts), tuple(texts))
            self.started += texts
        else:
            parent.finish = "length"  # the answer is as long as it may be

    def _build(self, parent: Sequence, step: Generate, is_answer: bool = False) -> list[Sequence] | None:
        """The sequences of what is asked; None if the answer that it goes on with is full."""
        built = [self.prompts.build(parent, ask, is_answer) for ask in step.asks]
        texts = [pair for pair in built if pair is not None]
        if len(texts) < len(built):
            return None
        for _, passages in texts:
            parent.sources.update({passage.id: passage for passage in passages})
        parent.record(
            "asking",
            step=step.name,
            prompts=[ask.text or "" for ask in step.asks],
            passages=[[passage.id for passage in passages] for _, passages in texts],
        )
        return [sequence for sequence, _ in texts]

    def _replies(self, parent: Sequence, step: Generate, texts: list[Sequence]) -> list[Reply] | None:
        """The replies of a step whose texts are there; None if one of them failed."""
        for text in texts:
            for name in _SUMMED:
                setattr(parent.stats, name, getattr(parent.stats, name) + getattr(text.stats, name))
            parent.stats.tokens_discarded += text.stats.tokens_kept
        parent.record(
            "answered",
            step=step.name,
            texts=[text.output_text.text for text in texts],
            num_tokens=[len(text.output_text) for text in texts],
        )
        for text, ask in zip(texts, step.asks, strict=True):
            if ask.text is None and not ask.begin:
                parent.policy.last_answer = text
        failed = next((text for text in texts if text.finish in ("error", "abort", "timeout")), None)
        if failed is not None:
            parent.finish, parent.error = failed.finish, failed.error
            return None
        return [self._reply(text) for text in texts]

    def _reply(self, text: Sequence) -> Reply:
        """A text as policies read it: the likeliest tokens by their own texts."""
        output = text.output_text
        end = None if text.sentence is None else output.sentence_end(text.sentence)
        logprobs = [token.logprob for token in output.tokens][: None if end is None else output.tokens_before(end)]
        mean_prob = math.exp(sum(logprobs) / len(logprobs)) if logprobs else 1.0
        scored = output.tokens if text.request.params.logprobs else []
        top = [self._by_text(token.top_logprobs or {}) for token in scored]
        tokens = tuple(self.prompts.text_of(token_id) for token_id in output.ids) if top else ()
        assert text.finish is not None
        return Reply(output.text, text.finish, mean_prob, tuple(top), tokens, self._reading(text), text)

    def _by_text(self, scores: Mapping[int, float]) -> dict[str, float]:
        """Tokens that decode to the same text, like bytes, count together."""
        total: dict[str, float] = {}
        for token_id, logprob in scores.items():
            text = self.prompts.text_of(token_id)
            total[text] = total.get(text, 0.0) + math.exp(logprob)
        return {text: math.log(prob) if prob > 0 else -math.inf for text, prob in total.items()}

    def _reading(self, text: Sequence) -> Reading | None:
        attention, output, prompt_ids = text.attention, text.output_text, text.request.prompt_ids
        if attention is None:
            return None
        prompt = Detokenizer(self.prompts.input_processor.tokenizer, ())
        for token_id in prompt_ids:
            prompt.append(token_id)
        ends = tuple(prompt.end_of(number) for number in range(1, len(prompt_ids) + 1))
        entropies = tuple(token.entropy for token in output.tokens)
        return Reading(prompt.text, ends, output.token_ends, entropies, attention.weights, attention.received)

    def _search(self, parent: Sequence, retrieval: Worker, step: Search) -> None:
        for text in step.queries:
            parent.record("retrieving", query=text)
        queries = [Query(text, parent.request.memory, step.top_k) for text in step.queries]
        jobs = tuple(retrieval.submit(query, self.config.timeout) for query in queries)
        parent.policy.side = SideWork(partial(self._retrieved, parent, jobs), jobs=jobs)

    def _retrieved(self, parent: Sequence, jobs: tuple[Job, ...]) -> list[tuple[Passage, ...]]:
        """The passages of finished retrievals, which go into the trace."""
        passages, waited_s = [], parent.stats.retrieval_wait_s + max((job.latency_s for job in jobs), default=0.0)
        for job in jobs:
            hits = retrieved_passages(job, self.config.retrieval_threshold)
            record_retrieval(parent, job, hits)
            passages.append(tuple(hit.passage for hit in hits))
        parent.stats.retrieval_wait_s = waited_s  # they ran side by side
        return passages

    def _verify(self, parent: Sequence, verification: Worker, step: VerifyTexts) -> None:
        closed_world = parent.request.original.closed_world
        requests = [replace(request, closed_world=closed_world) for request in step.requests]
        job = verification.submit(requests, self.config.timeout)
        parent.policy.side = SideWork(partial(self._checked, parent, job), jobs=(job,))

    def _checked(self, parent: Sequence, job: Job) -> list[VerificationResult]:
        """The results of a finished check, each with the reason if it failed."""
        parent.stats.verifications += 1
        parent.stats.verification_wait_s += job.latency_s
        parent.policy.check_latency_s = job.latency_s
        results: list[VerificationResult] = job.result
        return [VerificationResult(notes=(job.error,))] * len(job.payload) if job.error else results
