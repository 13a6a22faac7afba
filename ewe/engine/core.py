"""The step-based engine core: continuous batching of sequences that come, pause, go on and end at any moment.

Not thread-safe but for `wake`.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ewe.config import Config
from ewe.engine import wordings
from ewe.engine.inflight_batch import InflightBatch, Processor, SchedulerOutput, Writer, known_draws, last_tokens
from ewe.engine.model_runner import ForwardResult
from ewe.engine.next_action import Action
from ewe.engine.out_of_memory import Runner
from ewe.engine.output import complete, publish, show
from ewe.engine.policy_runner import PolicyRunner
from ewe.engine.refresh import MemoryKeeper
from ewe.engine.sampler import SamplingRow, Token
from ewe.engine.scheduler import Scheduler
from ewe.engine.sequence import Sequence
from ewe.engine.turns import Turns
from ewe.engine.workers import Worker
from ewe.errors import EngineDeadError
from ewe.text.json_schema import GRAMMAR_FAILED
from ewe.types import FinishReason, Generation

_IDLE_S = 0.5


@dataclass(eq=False)
class EngineCore:
    """Runs sequences to their ends; `on_finish` is called with each sequence and its result.

    eos_token_ids: what ends a text unless `ignore_eos`. ahead: whether a pass is launched before the tokens of the one
    before it are read, so that the device need not wait for the host; the texts are the same. processor: what replaces
    the model's distributions, if anything does.
    """

    config: Config
    ahead: bool
    runner: Runner
    scheduler: Scheduler
    keeper: MemoryKeeper
    policies: PolicyRunner
    workers: tuple[Worker, ...]
    eos_token_ids: frozenset[int]
    on_finish: Callable[[Sequence, Generation], None]
    changed: threading.Event
    processor: Processor | None = None
    sequences: list[Sequence] = field(default_factory=list, init=False)
    _inflight: InflightBatch | None = field(default=None, init=False)
    _landed: float = field(default=0.0, init=False)
    _turns: Turns = field(default_factory=Turns, init=False)

    def add(self, sequence: Sequence) -> None:
        """Takes a request in; answers that share a prompt join when that has been computed."""
        if not sequence.is_scored:
            self.sequences += self.policies.answers_of(sequence)
            return
        sequence.schedule.is_started = True
        self.sequences.insert(sum(item.is_scored for item in self.sequences), sequence)

    def abort(self, request_id: str) -> None:
        """Ends all sequences of a request, whatever they are doing."""
        for sequence in [item for item in self.sequences if item.request.id == request_id]:
            self.end(sequence, "abort")

    @property
    def is_busy(self) -> bool:
        """Whether sequences are left."""
        return bool(self.sequences)

    def step(self) -> bool:
        """One round: answers are taken, one forward pass is launched. Returns whether sequences are left.

        Reads the pass's tokens, or those of the pass before while this one runs. Waits for an answer if nothing can be
        run; `changed` ends the wait.
        """
        now = time.monotonic()
        for worker in self.workers:
            worker.abandon_overdue(now)
        self._expire(now)
        self.sequences += self.policies.side.take_started()
        self._start_waiting()
        started = [sequence for sequence in self.sequences if sequence.schedule.is_started]
        plan = self.scheduler.schedule(self._advance_all(started))
        ready = [sequence for sequence, action in self._advance_all(plan.encoded) if action is Action.RUN]
        plan.candidates = [*plan.candidates, *(sequence for sequence in ready if sequence.drawn is not None)]
        self.scheduler.add_contexts(plan, ready)
        before, self._inflight = self._inflight, self._launch(plan) if plan.rows else None
        if before is not None:
            self._land(before)
        if self._inflight is not None and not (self.ahead and self._inflight.may_be_followed):
            self._land(self._inflight)
            self._inflight = None
        idle = not (plan.rows or before is not None or plan.progressed or self.policies.side.started)
        if idle and self.is_busy and not any(sequence.is_finished for sequence in started):
            self.changed.wait(self._time_to_wait(now))
            self.changed.clear()  # only now: what sets it before or after is looked at in the next step
        return bool(self.sequences)

    def close(self) -> None:
        """Ends the workers' threads and frees what the runner holds; no step is under way."""
        for worker in self.workers:
            worker.close()
        self.runner.close()

    def end(self, sequence: Sequence, reason: FinishReason, error: str = "") -> None:
        """Ends a sequence and the answers that wait for its prompt, in whatever state; one that has ended stays so."""
        if sequence.is_finished:
            return
        side = sequence.feedback.side
        for text in () if side is None else side.texts:
            self.end(text, reason, error)
        sequence.finish, sequence.error = reason, error
        sequence.output_text.finish()
        self._finish(sequence)

    def _expire(self, now: float) -> None:
        for sequence in list(self.sequences):
            if sequence.deadline is not None and now >= sequence.deadline:
                self.end(sequence, "timeout")

    def _start_waiting(self) -> None:
        """Starts requests with their first retrieval, each tenant in its turn: as many as can be admitted together.

        A retriever that got the queries of thousands of requests at once would answer none of them in time.
        """
        room = self.config.scheduler.max_num_seqs - sum(
            item.schedule.is_started and not item.schedule.is_admitted and not item.feedback.is_composed
            for item in self.sequences
        )
        if room <= 0:
            return
        started = [item for item in self.sequences if item.schedule.is_started]
        waiting = [item for item in self.sequences if not item.schedule.is_started]
        for sequence in self._turns.order(waiting, started)[:room]:
            self._turns.take(sequence)
            sequence.schedule.is_started = True
            sequence.schedule.queued_s = time.monotonic() - sequence.arrived
            self.policies.start(sequence)

    def _time_to_wait(self, now: float) -> float:
        deadlines = [worker.next_deadline() for worker in self.workers]
        deadlines += [sequence.deadline for sequence in self.sequences]
        nearest = min((deadline for deadline in deadlines if deadline is not None), default=now + _IDLE_S)
        return max(0.0, min(nearest - now, _IDLE_S))

    def _advance_all(self, sequences: list[Sequence]) -> list[tuple[Sequence, Action]]:
        """Those that are not finished then, with what is left to do."""
        wanted: list[tuple[Sequence, Action]] = []
        for sequence in sequences:
            action = self.policies.advance(sequence)
            if action is Action.COMPLETE:
                self._finish(sequence)
            elif action is Action.DRAW and sequence.schedule.swapped is None:
                wanted += [(side, Action.RUN) for side in self._begin_drawing(sequence)]
            else:
                wanted.append((sequence, action))
        return wanted

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
            self.scheduler.failed(plan)
            for sequence in plan.busy:
                self.end(sequence, "error", f"the forward pass failed: {type(error).__name__}: {error}")
            return None
        self.scheduler.launched(plan)
        writers = self._writers(plan, result, inflight)
        if writers:
            rows = draws or [self._sampling_row(item.sequence) for item in writers]
            inflight.draw(result, writers, rows, with_entropy, self.processor)
        return inflight

    def _land(self, inflight: InflightBatch) -> None:
        """Takes the tokens of a pass into their texts; on a GPU the pass is over when they are read."""
        tokens = inflight.read()
        now = time.monotonic()
        for sequence in inflight.busy:
            sequence.stats.passes += 1
            sequence.stats.decode_s += now - max(inflight.launched, self._landed)
        self._landed = now
        for sequence, token in tokens:
            if math.isnan(token.logprob):
                self.end(sequence, "error", "the model returned logits that are not finite")
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
            members = (sequence, *self._fork_siblings(sequence))
            writers += [Writer(member, position, shares) for member in members if self._may_go_on(member)]
        return writers

    def _may_go_on(self, sequence: Sequence) -> bool:
        """Moves the sequence's grammar to the end of its text; a text that has left it is an error and ends."""
        if sequence.finish is not None:  # its policy failed as it began
            return False
        problem = "" if sequence.grammar is None else sequence.grammar.follow(sequence.output_text.ids)
        if problem:
            self.end(sequence, "error", f"{GRAMMAR_FAILED}{problem}")
        return not problem

    def _sampling_row(self, sequence: Sequence) -> SamplingRow:
        return sequence.sampling_row(self.eos_token_ids, self.config.feedback.retry_temperature)

    def _fork_siblings(self, sequence: Sequence) -> list[Sequence]:
        """The further answers of a request, which share the prompt's blocks and the memory from here on."""
        siblings, sequence.siblings = sequence.siblings, []
        if not siblings:
            return siblings
        for sibling in siblings:
            sibling.table = sequence.table.fork()
            self.keeper.fork(sequence, sibling)
            sibling.prompt_scores = sequence.prompt_scores
            sibling.schedule.is_started = sibling.schedule.is_admitted = True
            sibling.trace.extend(sequence.trace)
            self.policies.start(sibling, is_first=False)
        position = self.sequences.index(sequence) + 1
        self.sequences[position:position] = siblings
        return siblings

    def _begin_drawing(self, sequence: Sequence) -> list[Sequence]:
        """The sequences that draw the wordings that a sequence waits for; they come right after it."""
        assert sequence.feedback.drawing is not None
        sides = wordings.begin(sequence, sequence.feedback.drawing, self.keeper)
        position = self.sequences.index(sequence) + 1
        self.sequences[position:position] = sides
        return sides

    def _append(self, sequence: Sequence, token: Token) -> None:
        params, draft = sequence.request.params, sequence.output_text
        stopped = draft.append(token)
        # A grammar allows EOS only where the text may end, and nothing else where it must.
        heeds_eos = not params.ignore_eos or sequence.grammar is not None
        ended = token.id in params.stop_token_ids or (token.id in self.eos_token_ids and heeds_eos)
        sequence.end_text(stopped or ended)
        show(sequence)  # before its checks are announced
        self.policies.look(sequence)
        publish(sequence, self.policies.holds_text)

    def _finish(self, sequence: Sequence) -> None:
        if sequence.is_finished:
            return
        if sequence.wants_attention and sequence.schedule.swapped is None and sequence.finish in ("stop", "length"):
            num_read = len(sequence.request.prompt_ids) + max(len(sequence.output_text) - 1, 0)
            slots = sequence.table.slots()[:num_read]
            sequence.attention = self.runner.text_attention(slots, len(sequence.request.prompt_ids))
        if sequence.drawn is not None:
            self._finish_wording(sequence, sequence.drawn.main)
            return
        self.policies.close(sequence)
        generation = complete(sequence)
        self._leave(sequence)
        if sequence.asker is None:
            self.on_finish(sequence, generation)
        else:
            self.policies.take_replies(sequence.asker)
        drawing = sequence.feedback.drawing
        # Those that wait for its prompt, and those that draw for it, end with it.
        for other in (*sequence.siblings, *(drawing.sides if drawing is not None else ())):
            self.end(other, sequence.finish or "error", sequence.error)

    def _finish_wording(self, sequence: Sequence, main: Sequence) -> None:
        """A wording is there, for whom it was drawn; without it that one has failed."""
        self._leave(sequence)
        if sequence.finish == "error":
            self.end(main, "error", sequence.error)

    def _leave(self, sequence: Sequence) -> None:
        """Gives back all that a sequence holds."""
        sequence.is_finished = True
        self.scheduler.release(sequence)
        self.sequences = [item for item in self.sequences if item is not sequence]
