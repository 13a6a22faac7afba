"""Runs policies: resumes a sequence's generator when something has happened, and does what it yields.

Knows what can be asked for, and not what for: that is in `ewe.policies`.
"""

import time
from collections.abc import Callable
from collections.abc import Sequence as Batch
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any

from ewe.config import FeedbackConfig
from ewe.engine import effects, wordings
from ewe.engine.output import publish, record_check, record_retrieval, retrieved_passages
from ewe.engine.prompt_passages import PromptPassages
from ewe.engine.quoting import Quoter
from ewe.engine.refresh import MemoryKeeper
from ewe.engine.rewind import Rewinder
from ewe.engine.sentence_checks import Check
from ewe.engine.sequence import Sequence
from ewe.engine.wordings import Drawing
from ewe.engine.workers import Worker
from ewe.errors import EngineDeadError
from ewe.types import Lane, Query, VerificationRequest, VerificationResult
from ewe.types.protocols import FeedbackBuilder


class Action(Enum):
    """What to do with a sequence now."""

    RUN = auto()
    WAIT = auto()
    ENCODE = auto()
    ADD_RETRIEVED = auto()
    APPLY_VERDICTS = auto()
    DRAW = auto()
    TAKE_DRAWN = auto()
    TAKE_JUDGED = auto()
    COMPLETE = auto()


def next_action(sequence: Sequence) -> Action:
    """The step that a sequence's state asks for; a check that nobody waits for holds up nothing but the text's end.

    A verdict on a text whose memory is recorded comes first: it may make a later retrieval pointless.
    """
    state = sequence.feedback
    head = state.checks[0] if state.checks else None
    if sequence.finish == "error":
        return Action.COMPLETE
    if head is not None and head.snapshot is not None and head.job.done:
        return Action.APPLY_VERDICTS
    if state.retrieval is not None:
        return Action.ADD_RETRIEVED if state.retrieval.done else Action.WAIT
    if sequence.schedule.pending_units:
        return Action.ENCODE
    if state.judging is not None:
        return Action.TAKE_JUDGED if state.judging.done else Action.WAIT
    if state.drawing is not None:
        return _drawing_action(state.drawing)
    if head is not None:
        if head.job.done:
            return Action.APPLY_VERDICTS
        if sequence.finish is not None or any(check.waits for check in state.checks):
            return Action.WAIT
    return Action.RUN if sequence.finish is None else Action.COMPLETE


def _drawing_action(drawing: Drawing) -> Action:
    if not drawing.sides:
        return Action.DRAW
    return Action.TAKE_DRAWN if drawing.is_done else Action.WAIT


@dataclass(eq=False)
class PolicyRunner:
    """Runs one policy for all sequences of an engine.

    name: the policy's, for errors. retrieval and verification may be None where the policy never asks for them.
    encode: the tokens of a text that is put into an answer. feedback: turns what a check found into passages.
    prompt_passages: puts passages into prompts; None: they become units. remembers: whether memories are searched, too.
    """

    name: str
    policy: effects.Policy
    config: FeedbackConfig
    retrieval: Worker | None
    verification: Worker | None
    keeper: MemoryKeeper
    encode: Callable[[str], Batch[int]]
    feedback: FeedbackBuilder | None = None
    prompt_passages: PromptPassages | None = None
    remembers: bool = False

    def __post_init__(self) -> None:
        self.needs_entropy = self.policy.reads_entropy(self.config)
        self.holds_text = self.policy.rewrites and (self.verification is not None or not self.policy.verifies)
        self._rewinder = Rewinder(self.keeper)
        self._quoter = Quoter(self._rewinder, self.encode)

    def start(self, sequence: Sequence, is_first: bool = True) -> None:
        """Begins the policy of an answer: before anything is computed, or when it joins the first of its request."""
        if sequence.request.asked.is_plain:
            return
        in_prompt, can_verify = self.prompt_passages, self.policy.verifies and self.verification is not None
        places = in_prompt.most if in_prompt is not None and in_prompt.fits(sequence) else None
        can_retrieve = self.policy.retrieves and self.retrieval is not None
        answer = effects.Answer(sequence, is_first, can_retrieve, can_verify, places, self.remembers, self.feedback)
        sequence.feedback.steps = self.policy(answer, self.config)
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
            elif action is Action.TAKE_DRAWN:
                self._resume(sequence, effects.Drawn(wordings.drawn(sequence)))
            elif action is Action.TAKE_JUDGED:
                self._resume(sequence, effects.Judged(*wordings.judged(sequence)))
            else:
                self._note(sequence, action)
                return action
            publish(sequence, self.holds_text)

    def close(self, sequence: Sequence) -> None:
        """Ends the policy of a sequence that has ended."""
        steps, sequence.feedback.steps = sequence.feedback.steps, None
        if steps is not None:
            try:
                steps.close()
            except Exception as error:  # a policy is anybody's code, and its text is there
                sequence.record("skip", reason=f"policy {self.name} did not end: {error}")

    def _resume(self, sequence: Sequence, result: Any = None) -> None:
        """Tells a policy what has happened and does what it yields, until it writes on; its fault ends its request."""
        state = sequence.feedback
        if state.steps is None:
            return
        try:
            while not isinstance(effect := state.steps.send(result), effects.Write):
                result = self._do(sequence, effect)
            state.every = effect.every
            self._ask(sequence)
        except StopIteration:  # the text goes on by itself
            state.steps, state.every = None, ()
        except EngineDeadError:
            raise
        except Exception as error:  # a policy is anybody's code
            self._fail(sequence, f"policy {self.name} failed: {type(error).__name__}: {error}")

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
                raise TypeError(f"it yielded {effect!r}, which asks for nothing")
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

    def _ask(self, sequence: Sequence) -> None:
        """Submits what a policy has asked for since it last wrote: one pause, once there is a text to pause."""
        asked, sequence.feedback.asked = sequence.feedback.asked, []
        if asked and sequence.schedule.is_admitted:
            sequence.feedback.paused_at = time.monotonic()
            names = ["retrieval" if isinstance(effect, effects.Retrieve) else "verification" for effect in asked]
            sequence.record("pause", **{"for": names})
        for effect in asked:
            if isinstance(effect, effects.Retrieve):
                self._retrieve(sequence, effect)
            else:
                self._verify(sequence, effect)

    def _retrieve(self, sequence: Sequence, effect: effects.Retrieve) -> None:
        if self.retrieval is None or sequence.feedback.retrieval is not None:
            raise ValueError("Retrieve: there is no retriever, or one retrieval is under way")
        sequence.record("retrieving", query=effect.query)
        query = Query(effect.query, sequence.request.memory, effect.top_k)
        sequence.feedback.retrieval = self.retrieval.submit(query, self.config.timeout)

    def _verify(self, sequence: Sequence, effect: effects.Verify) -> None:
        if self.verification is None:
            raise ValueError("Verify: there is no verifier")
        text, spans, state = sequence.output_text.text, sequence.output_text.sentences, sequence.feedback
        asked = partial(VerificationRequest, closed_world=sequence.request.asked.closed_world)
        requests = []
        for index in effect.sentences:
            start, end = spans[index].start, spans[index].end
            requests.append(asked(sequence.request.question, text[:start], text[start:end]))
            attempt = state.attempt_at(start)
            sequence.record("checking", number=index + 1, start=start, end=end, text=text[start:end], attempt=attempt)
        job = self.verification.submit(requests, self.config.timeout)
        state.checks.append(Check(job, effect.sentences, effect.wait, state.progress.retrieved))

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
        elif action is Action.WAIT and not (state.retrieval or state.drawing or state.checks_awaited_since):
            state.checks_awaited_since = time.monotonic()

    def _fail(self, sequence: Sequence, error: str) -> None:
        sequence.feedback.steps, sequence.feedback.every = None, ()
        sequence.void_placeholder()
        sequence.output_text.finish()
        sequence.finish, sequence.error = "error", error
