"""Runs policies: resumes a sequence's generator when something has happened, and does what it yields.

Knows what can be asked for, and not what for: that is in `ewe.policies`.
"""

import time
from dataclasses import dataclass
from typing import Any

from ewe.config import FeedbackConfig, PipelineConfig
from ewe.engine import effects, wordings
from ewe.engine.composed import adopt
from ewe.engine.next_action import Action, next_action
from ewe.engine.output import publish, record_check, record_retrieval, retrieved_passages
from ewe.engine.pauses import begin_pause
from ewe.engine.policy_answer import Answer
from ewe.engine.prompt_passages import PromptPassages
from ewe.engine.quoting import Quoter
from ewe.engine.refresh import MemoryKeeper
from ewe.engine.request import Request
from ewe.engine.rewind import Rewinder
from ewe.engine.sequence import Sequence
from ewe.engine.side_prompts import apart, check_asking
from ewe.engine.side_runner import SideRunner
from ewe.engine.side_texts import Ask, Asking, Ending, Reply
from ewe.engine.workers import Worker
from ewe.errors import EngineDeadError, PromptTooLongError
from ewe.types import FinishReason, Lane, VerificationResult
from ewe.types.protocols import FeedbackBuilder


@dataclass(eq=False)
class PolicyRunner:
    """Runs one policy for all sequences of an engine.

    name: the policy's, for errors. retrieval and verification may be None where the policy never asks for them. side:
    does what is asked for beside the text. feedback: turns what a check found into passages. prompt_passages: puts
    passages into prompts; None: they become units. remembers: whether memories are searched, too.
    """

    name: str
    policy: effects.Policy
    config: FeedbackConfig
    retrieval: Worker | None
    verification: Worker | None
    keeper: MemoryKeeper
    side: SideRunner
    pipeline: PipelineConfig
    feedback: FeedbackBuilder | None = None
    prompt_passages: PromptPassages | None = None
    remembers: bool = False

    def __post_init__(self) -> None:
        self.needs_entropy = self.policy.reads_entropy(self.config)
        self.holds_text = self.policy.rewrites and (self.verification is not None or not self.policy.verifies)
        self._rewinder = Rewinder(self.keeper)
        self._quoter = Quoter(self._rewinder, self.side.prompts.encode)

    def check(self, request: Request) -> None:
        """Raises InvalidRequestError for what a request cannot have under this policy."""
        if self.policy.asks and not request.is_plain:
            check_asking(request, self.name, self.policy.composes)

    def answers_of(self, sequence: Sequence) -> list[Sequence]:
        """What a request runs as: its first answer, which the others join; or all, if each asks on its own."""
        return apart(sequence) if self.policy.asks and not sequence.request.asked.is_plain else [sequence]

    def start(self, sequence: Sequence, is_first: bool = True) -> None:
        """Begins the policy of an answer: before anything is computed, or when it joins the first of its request."""
        if sequence.request.asked.is_plain:
            return
        in_prompt, can_verify = self.prompt_passages, self.policy.verifies and self.verification is not None
        places = in_prompt.most if in_prompt is not None and in_prompt.fits(sequence) else None
        can_retrieve = self.policy.retrieves and self.retrieval is not None
        answer = Answer(sequence, is_first, can_retrieve, can_verify, places, self.remembers, self.feedback)
        sequence.feedback.steps = self.policy(answer, self.pipeline if self.policy.asks else self.config)
        self._resume(sequence)

    def look(self, sequence: Sequence) -> None:
        """Pauses a text that has a token more, if its policy asked for that now."""
        draft, every = sequence.output_text, sequence.feedback.every
        if sequence.finish is None:
            if not any(len(draft) % number == 0 for number in every):
                return
            draft.find_sentences()
        self._resume(sequence, effects.Paused())

    def advance(self, sequence: Sequence) -> Action:
        """Works off what has been answered; returns the action that is left, which may be the sequence's end."""
        while True:
            action = next_action(sequence)
            if action is not Action.RUN:
                sequence.void_placeholder()
            if action in (Action.COMPLETE, Action.DRAW) or sequence.schedule.swapped is not None:
                return action
            if action is Action.ENCODE and self.keeper.is_encoded(sequence):
                self.keeper.commit(sequence)
            elif action is Action.ADD_RETRIEVED:
                self._end_retrieval(sequence)
            elif action is Action.APPLY_VERDICTS:
                self._end_check(sequence)
            elif action is Action.TAKE_REPLIES:
                self.take_replies(sequence)
            elif action is Action.TAKE_DRAWN:
                self._resume(sequence, effects.Drawn(wordings.drawn(sequence)))
            elif action is Action.TAKE_JUDGED:
                self._resume(sequence, effects.Judged(*wordings.judged(sequence)))
            else:
                self._note(sequence, action)
                return action
            publish(sequence, self.holds_text)

    def take_replies(self, sequence: Sequence) -> None:
        """Resumes a policy that waits for side work, if all of it is there."""
        side = sequence.feedback.side
        if side is None or not side.is_done:
            return
        sequence.feedback.side, result = None, side.result()
        if result is None and sequence.finish is not None:
            self._end(sequence, sequence.finish, sequence.error)
        else:
            self._resume(sequence, result)

    def close(self, sequence: Sequence) -> None:
        """Ends the policy of a sequence that has ended; at a deadline its draft has to do, if it has nothing else."""
        state = sequence.feedback
        if state.is_composed and sequence.finish == "timeout" and state.draft and not sequence.output_text.text:
            adopt(sequence, state.draft, sequence.finish)
        steps, sequence.feedback.steps = sequence.feedback.steps, None
        if steps is not None:
            try:
                steps.close()
            except Exception as error:  # a policy is anybody's code, and its text is there
                sequence.record("skip", reason=f"policy {self.name} did not end: {error}")

    def _resume(self, sequence: Sequence, result: Any = None) -> None:
        """Tells a policy what has happened and does what it yields, until it waits; its fault ends its request."""
        steps = sequence.feedback.steps
        if steps is None:
            return
        try:
            self._run(sequence, steps, result)
        except EngineDeadError:
            raise
        except PromptTooLongError as error:
            self._end(sequence, "error", f"policy {self.name}: {error}")
        except Exception as error:  # a policy is anybody's code
            self._end(sequence, "error", f"policy {self.name} failed: {type(error).__name__}: {error}")

    def _run(self, sequence: Sequence, steps: effects.Steps | Asking, result: Any) -> None:
        """Until the policy writes on, waits for side work, or has come to its end, or to that of its answer."""
        state = sequence.feedback
        while True:
            try:
                effect = steps.send(result)
            except StopIteration as stop:
                state.steps, state.every = None, ()
                self._conclude(sequence, stop.value)
                return
            if isinstance(effect, effects.Write):
                state.every, state.is_composed = effect.every, False
                begin_pause(sequence, self.config, self.retrieval, self.verification)
                return
            result = self._do(sequence, effect)
            if state.is_composed and sequence.finish is not None:
                self._end(sequence, sequence.finish)
            if state.side is not None or state.steps is None:
                return

    def _conclude(self, sequence: Sequence, ending: Ending) -> None:
        """Makes the answer of what a policy has returned."""
        match ending:
            case None:  # the text goes on by itself
                sequence.feedback.is_composed = False
            case Ask():
                self.side.begin(sequence, ending)
            case Reply(finish_reason=reason, source=source):
                if source is None:
                    raise ValueError("it returned a Reply that the engine has not given")
                adopt(sequence, source, reason)
                self._end(sequence, reason)
            case reason:
                self._end(sequence, reason)

    def _do(self, sequence: Sequence, effect: object) -> Any:
        """Does what a policy has yielded; returns the result."""
        match effect:
            case effects.Retrieve() | effects.Verify():
                sequence.feedback.asked.append(effect)
            case effects.Remember():
                return self._remember(sequence, effect)
            case effects.Forget():
                self.keeper.clear(sequence)
            case effects.Rewind(index, reason):
                self._rewinder.rewind(sequence, index, reason)
            case effects.Restore(index, attempt, reason):
                self._rewinder.restore(sequence, index, attempt, reason)
            case effects.Quote(index, quotation):
                return self._quoter.quote(sequence, index, quotation)
            case effects.Draw(index, count):
                wordings.ask(sequence, index, count)
            case effects.Judge(drawn):
                wordings.judge(sequence, drawn, self.verification, self.config.timeout)
            case effects.Take(index, judged, chosen):
                wordings.take(sequence, index, judged.wordings, chosen, judged.job)
            case effects.End():
                sequence.end_text(stopped=True)
            case _:
                return self.side.do(sequence, effect)
        return None

    def _remember(self, sequence: Sequence, effect: effects.Remember) -> bool:
        if effect.in_prompt:
            if self.prompt_passages is None or sequence.schedule.is_admitted:
                raise ValueError("Remember: there is no place in the prompt, or it has been read")
            self.prompt_passages.place(sequence, effect.hits)
        elif effect.lane is Lane.RETRIEVAL:
            new = [hit for hit in effect.hits if hit.passage.id not in sequence.prompt_passages]
            self.keeper.add_retrieved(sequence, new)
        else:
            self.keeper.plan(sequence, effect.hits, effect.lane)
        return bool(sequence.schedule.pending_units)

    def _end_retrieval(self, sequence: Sequence) -> None:
        job, sequence.feedback.retrieval = sequence.feedback.retrieval, None
        assert job is not None
        found = retrieved_passages(job, self.config.retrieval_threshold)
        record_retrieval(sequence, job, found)
        self._resume(sequence, effects.Retrieved(tuple(found), job.error))

    def _end_check(self, sequence: Sequence) -> None:
        """Tells of the oldest check, which is open until the last of its sentences: a rewind returns to its memory."""
        state, check = sequence.feedback, sequence.feedback.checks[0]
        if state.checks_awaited_since is not None:
            sequence.stats.verification_wait_s += time.monotonic() - state.checks_awaited_since
            state.checks_awaited_since = None
        sequence.stats.verifications += 1
        results = [VerificationResult()] * len(check.sentences) if check.job.error else check.job.result
        for index, result in zip(check.sentences, results, strict=True):
            record_check(sequence, check.job, index, result)
            self._resume(sequence, effects.Verified(index, result, check.job.error))
            if not state.checks or state.checks[0] is not check:
                return
        state.checks.popleft()
        self.keeper.drop_snapshot(check.snapshot)

    def _note(self, sequence: Sequence, action: Action) -> None:
        """Notes that a pause is over, or that the sequence waits for verdicts alone from now on."""
        state = sequence.feedback
        if action is Action.RUN:
            self.keeper.take_snapshots(sequence)
            if state.paused_at is not None:
                sequence.record("resume", waited_s=time.monotonic() - state.paused_at)
                state.paused_at = None
        elif action is Action.WAIT and not (state.side or state.retrieval or state.drawing):
            state.checks_awaited_since = state.checks_awaited_since or time.monotonic()

    def _end(self, sequence: Sequence, reason: FinishReason, error: str = "") -> None:
        """Ends a text with its policy, and gives up what was to come into its memory."""
        self.close(sequence)
        sequence.feedback.every = ()
        sequence.void_placeholder()
        self.keeper.drop_pending(sequence)
        sequence.output_text.finish()
        sequence.finish, sequence.error = reason, error
