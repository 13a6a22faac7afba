"""The step-based engine core: continuous batching of sequences that come, pause, go on and end at any moment.

Not thread-safe.
"""

import math
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from ewe.config import Config
from ewe.engine.evidence.workers import Worker
from ewe.engine.model_executor.model_runner import ForwardResult
from ewe.engine.model_executor.out_of_memory import Runner
from ewe.engine.models.device import has_failed
from ewe.engine.output import publish
from ewe.engine.policy_runtime.policy_runner import PolicyRunner
from ewe.engine.sampling.grammar import Grammar
from ewe.engine.sampling.sampler import SamplingRow, Token
from ewe.engine.scheduling.active_sequences import ActiveSequences
from ewe.engine.scheduling.inflight_batch import (
    InflightBatch,
    Processor,
    SchedulerOutput,
    Writer,
    by_passage,
    known_draws,
    last_tokens,
)
from ewe.engine.scheduling.scheduler import Scheduler
from ewe.engine.sequence import Sequence
from ewe.errors import EngineDeadError
from ewe.text.json_schema import GRAMMAR_FAILED

_IDLE_S = 0.5


@dataclass(eq=False)
class EngineCore:
    """Runs sequences to their ends, a forward pass per step.

    eos_token_ids: what ends a text unless `ignore_eos`. async_scheduling: whether a pass is launched before the tokens
    of the one before it are read, so that the device need not wait for the host; the texts are the same. processor:
    what replaces the model's distributions, if anything does.
    """

    config: Config
    async_scheduling: bool
    runner: Runner
    scheduler: Scheduler
    active: ActiveSequences
    policies: PolicyRunner
    workers: tuple[Worker, ...]
    eos_token_ids: frozenset[int]
    changed: threading.Event
    processor: Processor | None = None
    _inflight: InflightBatch | None = field(default=None, init=False)
    _last_read: float = field(default=0.0, init=False)

    def step(self) -> bool:
        """One round: answers are taken, one forward pass is launched. Returns whether sequences are left.

        Reads the pass's tokens, or those of the pass before while this one runs. Waits for an answer if nothing can be
        run; `changed` ends the wait.
        """
        now = time.monotonic()
        for worker in self.workers:
            worker.abandon_overdue(now)
        self.active.expire(now)
        self.active.sequences += self.policies.effect_runner.side.take_started()
        self.active.start_waiting()
        started = self.active.started
        plan = self.scheduler.schedule(self.active.advance(started))
        ready = [sequence for sequence, action in self.active.advance(plan.encoded) if action == "run"]
        plan.candidates = [*plan.candidates, *(sequence for sequence in ready if sequence.wording_task is not None)]
        self.scheduler.add_contexts(plan, ready)
        before, self._inflight = self._inflight, self._launch(plan) if plan.rows else None
        if before is not None:
            self._read_tokens(before)
        if self._inflight is not None and not (self.async_scheduling and self._inflight.may_be_followed):
            self._read_tokens(self._inflight)
            self._inflight = None
        idle = not (plan.rows or before is not None or plan.progressed or self.policies.effect_runner.side.started)
        if idle and self.active.sequences and not any(sequence.is_finished for sequence in started):
            self.changed.wait(self._time_to_wait(now))
            self.changed.clear()  # only now: what sets it before or after is looked at in the next step
        return bool(self.active.sequences)

    def close(self) -> None:
        """Ends the workers' threads and frees what the runner holds; no step is under way."""
        for worker in self.workers:
            worker.close()
        self.runner.close()

    def _time_to_wait(self, now: float) -> float:
        deadlines = [worker.next_deadline() for worker in self.workers]
        deadlines += [sequence.deadline for sequence in self.active.sequences]
        nearest = min((deadline for deadline in deadlines if deadline is not None), default=now + _IDLE_S)
        return max(0.0, min(nearest - now, _IDLE_S))

    def _launch(self, plan: SchedulerOutput) -> InflightBatch | None:
        """Starts a pass and the draws of its tokens; None if it failed."""
        inflight = InflightBatch(list(plan.busy))
        with_entropy = self.policies.needs_entropy
        draws = None if with_entropy or self.processor is not None else known_draws(plan, self._sampling_row)
        try:
            result = self.runner.forward(plan.rows, draws)
        except EngineDeadError:
            raise
        except Exception as error:  # models are foreign code: what they raise fails the requests in the pass alone
            if has_failed(self.scheduler.pool.device):
                raise
            self.scheduler.failed(plan)
            self._fail(plan.busy, f"the forward pass failed: {type(error).__name__}: {error}")
            return None
        self.scheduler.launched(plan)
        writers = self._writers(plan, result, inflight)
        if writers:
            rows = draws or [self._sampling_row(item.sequence) for item in writers]
            try:
                inflight.draw(result, writers, rows, with_entropy, self.processor)
            except torch.OutOfMemoryError as error:  # of what these answers ask for: penalties, many logprobs
                # Further answers share their prompt's pass; they would have nothing to run next.
                self._fail([*plan.busy, *(item.sequence for item in writers)], f"there is no memory to draw: {error}")
                return None
        return inflight

    def _fail(self, sequences: Iterable[Sequence], reason: str) -> None:
        for sequence in sequences:
            self.active.end(sequence, "error", reason)

    def _read_tokens(self, inflight: InflightBatch) -> None:
        """Takes the tokens of a pass into their texts; on a GPU the pass is over when they are read."""
        tokens = inflight.read()
        now = time.monotonic()
        took = now - max(inflight.launched, self._last_read)
        for sequence in inflight.busy:
            stats = sequence.stats
            stats.passes += 1
            stats.decode_s += took
        self._last_read = now
        for sequence, token in tokens:
            if math.isnan(token.logprob):
                self.active.end(sequence, "error", "the model returned logits that are not finite")
            else:
                self._append(sequence, token)

    def _writers(self, plan: SchedulerOutput, result: ForwardResult, inflight: InflightBatch) -> list[Writer]:
        """Every sequence whose last token is in the pass, and the answers that share its prompt.

        Prompts that are only scored are, on the way.
        """
        writers = []
        for sequence, position, shares in last_tokens(plan, result):
            if sequence.is_scored:
                inflight.score(sequence, result.logits[position])
                continue
            for member in (sequence, *self.active.fork_siblings(sequence)) if sequence.siblings else (sequence,):
                # A policy may have failed as it began.
                if member.finish is None and (member.grammar is None or self._follows(member, member.grammar)):
                    attention = None if shares is None else by_passage(member, shares)
                    writers.append(Writer(member, position, attention))
        return writers

    def _follows(self, sequence: Sequence, grammar: Grammar) -> bool:
        """Moves a sequence's grammar to the end of its text; a text that has left it is an error and ends."""
        problem = grammar.follow(sequence.output_text.ids)
        if problem:
            self.active.end(sequence, "error", f"{GRAMMAR_FAILED}{problem}")
        return not problem

    def _sampling_row(self, sequence: Sequence) -> SamplingRow:
        return sequence.sampling_row(self.eos_token_ids, self.config.feedback.retry_temperature)

    def _append(self, sequence: Sequence, token: Token) -> None:
        params = sequence.request.original.params
        stopped = sequence.output_text.append(token)
        # A grammar allows EOS only where the text may end, and nothing else where it must.
        heeds_eos = not params.ignore_eos or sequence.grammar is not None
        ended = token.id in params.stop_token_ids or (token.id in self.eos_token_ids and heeds_eos)
        sequence.end_text(stopped or ended)
        if sequence.finish is not None or sequence.policy.every:
            self.policies.after_token(sequence)
        publish(sequence, self.policies.holds_text)
