"""Runs policies: resumes a sequence's generator when something has happened, and does what it yields.

Knows what can be asked for, and not what for: that is in `ewe.policies`.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from ewe.config import FeedbackConfig, PipelineConfig
from ewe.engine import effects
from ewe.engine.inputs.side_prompts import apart, check_asking
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.output import publish, record_check, record_retrieval, retrieved_passages, show
from ewe.engine.policy_answer import Answer
from ewe.engine.policy_runtime import wordings
from ewe.engine.policy_runtime.composed import adopt
from ewe.engine.policy_runtime.effect_check import check_effect, check_ending, described, log_failure, refuse_undeclared
from ewe.engine.policy_runtime.effect_runner import EffectRunner
from ewe.engine.policy_runtime.next_action import Action, next_action
from ewe.engine.request import Request
from ewe.engine.sequence import Sequence
from ewe.engine.side_texts import Ask, Asking, Ending, Reply
from ewe.errors import EngineDeadError, PromptTooLongError
from ewe.types import FinishReason, VerificationResult
from ewe.types.protocols import FeedbackBuilder

_MOST_AT_ONCE = 10_000  # Effects of one answer between two things that take time: the other answers wait for them.


@dataclass(eq=False)
class PolicyRunner:
    """Runs one policy for all sequences of an engine.

    name: the policy's, for errors. effect_runner: does what it yields. feedback: turns what a check found into
    passages. remembers: whether memories are searched, too.
    """

    name: str
    policy: effects.Policy
    config: FeedbackConfig
    pipeline: PipelineConfig
    effect_runner: EffectRunner
    memory_manager: MemoryManager
    feedback: FeedbackBuilder | None = None
    remembers: bool = False

    def __post_init__(self) -> None:
        self.needs_entropy = self.policy.wants_entropy(self.config)
        can_verify = self.effect_runner.verification is not None
        self.holds_text = self.policy.rewrites and (can_verify or not self.policy.verifies)

    def check(self, request: Request) -> None:
        """Raises InvalidRequestError for what a request cannot have under this policy."""
        if self.policy.asks and not request.is_plain:
            check_asking(request, self.name, self.policy.composes)

    def answers_of(self, sequence: Sequence) -> list[Sequence]:
        """What a request runs as: its first answer, which the others join; or all, if each asks on its own."""
        return apart(sequence) if self.policy.asks and not sequence.request.original.is_plain else [sequence]

    def start(self, sequence: Sequence, is_first: bool = True) -> None:
        """Begins the policy of an answer: before anything is computed, or when it joins the first of its request."""
        sequence.is_final_at_once = not self.holds_text
        if self.policy.asks:  # its answers are put together from other texts
            sequence.on_tokens = None
        if sequence.request.original.is_plain:
            return
        runner = self.effect_runner
        in_prompt, can_verify = runner.prompt_passages, self.policy.verifies and runner.verification is not None
        places = in_prompt.most if in_prompt is not None and in_prompt.fits(sequence) else None
        can_retrieve = self.policy.retrieves and runner.retrieval is not None
        answer = Answer(
            sequence, is_first, can_retrieve, can_verify, places, self.remembers, self.feedback, self.needs_entropy
        )
        self._guarded(sequence, self._begin, answer)

    def after_token(self, sequence: Sequence) -> None:
        """Pauses a text that has a token more, if it has ended or its policy asked for that now.

        Of what the model reasons before its answer no policy hears.
        """
        if sequence.finish is None:
            if sequence.output_text.is_reasoning:
                return
            length = len(sequence.output_text.ids)
            if 0 not in [length % number for number in sequence.policy.every]:
                return
            sequence.output_text.find_sentences()
        show(sequence)  # before its checks are announced
        self._resume(sequence, effects.Paused())

    def advance(self, sequence: Sequence) -> Action:
        """Works off what has been answered; returns the action that is left, which may be the sequence's end."""
        state = sequence.policy
        while True:
            action = next_action(sequence)
            if action == "run":
                if (state.checks or state.paused_at is not None) and sequence.schedule.swapped is None:
                    self._go_on(sequence)
                return action
            sequence.void_placeholder()
            if action in ("complete", "draw") or sequence.schedule.swapped is not None:
                return action
            if action == "encode" and self.memory_manager.is_encoded(sequence):
                self.memory_manager.commit(sequence)
            elif action == "add_retrieved":
                self._end_retrieval(sequence)
            elif action == "apply_verdicts":
                self._end_check(sequence)
            elif action == "take_replies":
                self.take_replies(sequence)
            elif action == "take_drawn":
                self._resume(sequence, effects.Drawn(wordings.collect(sequence)))
            elif action == "take_judged":
                self._resume(sequence, effects.Judged(*wordings.judged(sequence)))
            else:
                awaits_checks = action == "wait" and not (state.side or state.retrieval or state.drawing)
                if awaits_checks and not state.checks_awaited_since:
                    state.checks_awaited_since = time.monotonic()
                return action
            publish(sequence, self.holds_text)

    def take_replies(self, sequence: Sequence) -> None:
        """Resumes a policy that waits for side work, if all of it is there."""
        side = sequence.policy.side
        if side is None or not side.is_done:
            return
        sequence.policy.side, result = None, side.result()
        if result is None and sequence.finish is not None:
            self._end(sequence, sequence.finish, sequence.error)
        else:
            self._resume(sequence, result)

    def close(self, sequence: Sequence) -> None:
        """Ends the policy of a sequence that has ended; at a deadline its draft has to do, if it has nothing else."""
        state = sequence.policy
        if state.is_composed and sequence.finish == "timeout" and state.last_answer and not sequence.output_text.text:
            adopt(sequence, state.last_answer, sequence.finish)
        steps, sequence.policy.steps = sequence.policy.steps, None
        if steps is not None:
            try:
                steps.close()
            except (Exception, SystemExit) as error:  # a policy is anybody's code, and its text is there
                sequence.record("skip", reason=f"policy {self.name} did not end: {described(error)}")

    def _begin(self, sequence: Sequence, answer: Answer) -> None:
        steps = self.policy(answer, self.pipeline if self.policy.asks else self.config)
        if not isinstance(steps, Generator):
            raise TypeError(f"it is no generator function: nothing in it yields, and it returned {steps!r:.80}")
        sequence.policy.steps = steps
        self._run(sequence, steps, None)

    def _resume(self, sequence: Sequence, result: Any) -> None:
        """Tells a policy what has happened and does what it yields, until it waits."""
        if sequence.policy.steps is not None:
            self._guarded(sequence, self._run, sequence.policy.steps, result)

    def _guarded(self, sequence: Sequence, work: Callable[..., None], *given: Any) -> None:
        """Does a part of a policy, whose fault ends its request alone; the log has the traceback."""
        try:
            work(sequence, *given)
        except (EngineDeadError, KeyboardInterrupt):
            raise
        except PromptTooLongError as error:
            self._end(sequence, "error", f"policy {self.name}: {error}")
        except BaseException as error:  # a policy is anybody's code, and sys.exit() there must not end the engine
            log_failure(self.name, sequence.policy.steps, error)
            self._end(sequence, "error", f"policy {self.name} failed: {described(error)}")

    def _run(self, sequence: Sequence, steps: effects.Steps | Asking, result: Any) -> None:
        """Until the policy writes on, waits for side work, or has come to its end, or to that of its answer."""
        state = sequence.policy
        for _ in range(_MOST_AT_ONCE):
            try:
                effect = steps.send(result)
            except StopIteration as stop:
                state.steps, state.every = None, ()
                check_ending(stop.value)
                self._conclude(sequence, stop.value)
                return
            if not isinstance(effect, effects.Write) or effect.every != state.every:
                check_effect(effect, len(sequence.output_text.sentences))
            if isinstance(effect, effects.Write):
                state.every, state.is_composed = effect.every, False
                self.effect_runner.submit(sequence)
                return
            refuse_undeclared(self.policy, effect, self.holds_text)
            result = self.effect_runner.do(sequence, effect)
            if state.is_composed and sequence.finish is not None:
                self._end(sequence, sequence.finish)
            if state.side is not None or state.steps is None:
                return
        raise ValueError(f"it yielded {_MOST_AT_ONCE:,} effects without a Write: nothing would ever be written")

    def _conclude(self, sequence: Sequence, ending: Ending) -> None:
        """Makes the answer of what a policy has returned."""
        match ending:
            case None:  # the text goes on by itself
                sequence.policy.is_composed = False
            case Ask():
                refuse_undeclared(self.policy, ending, self.holds_text)
                self.effect_runner.side.begin(sequence, ending)
            case Reply(finish_reason=reason, source=source):
                if source is None:
                    raise ValueError("it returned a Reply that the engine has not given")
                adopt(sequence, source, reason)
                self._end(sequence, reason)
            case reason:
                self._end(sequence, reason)

    def _end_retrieval(self, sequence: Sequence) -> None:
        job, sequence.policy.retrieval = sequence.policy.retrieval, None
        assert job is not None
        hits = retrieved_passages(job, self.config.retrieval_threshold)
        record_retrieval(sequence, job, hits)
        self._resume(sequence, effects.Retrieved(tuple(hits), job.error))

    def _end_check(self, sequence: Sequence) -> None:
        """Tells of the oldest check, which is open until the last of its sentences: a rewind returns to its memory."""
        state, check = sequence.policy, sequence.policy.checks[0]
        if state.checks_awaited_since is not None:
            sequence.stats.verification_wait_s += time.monotonic() - state.checks_awaited_since
            state.checks_awaited_since = None
        sequence.stats.verifications += 1
        results = [VerificationResult()] * len(check.sentences) if check.job.error else check.job.result
        for number, (index, result) in enumerate(zip(check.sentences, results, strict=True), 1):
            check.is_over = number == len(results)
            record_check(sequence, check.job, index, result)
            self._resume(sequence, effects.Verified(index, result, check.job.error))
            if not state.checks or state.checks[0] is not check:
                return
        state.checks.popleft()
        self.memory_manager.drop_snapshot(check.snapshot)

    def _go_on(self, sequence: Sequence) -> None:
        """Notes that a pause is over, and the memory that a text which goes on may have to return to."""
        self.memory_manager.take_snapshots(sequence)
        if sequence.policy.paused_at is not None:
            sequence.record("resume", waited_s=time.monotonic() - sequence.policy.paused_at)
            sequence.policy.paused_at = None

    def _end(self, sequence: Sequence, reason: FinishReason, error: str = "") -> None:
        """Ends a text with its policy, and gives up what was to come into its memory."""
        self.close(sequence)
        sequence.policy.every = ()
        sequence.void_placeholder()
        self.memory_manager.drop_pending(sequence)
        sequence.output_text.finish()
        sequence.finish, sequence.error = reason, error
