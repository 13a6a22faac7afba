"""The pause state machine: what a sequence does next, and which jobs a look opens.

Decides neither when to look (policies do) nor what a refuted sentence becomes (the rewriter does).
"""

import time
from collections.abc import Sequence as Batch
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from ewe.checked import CODE
from ewe.config import FeedbackConfig
from ewe.engine.output import publish
from ewe.engine.policies import Decision, Policy, View
from ewe.engine.prompt_passages import PromptPassages
from ewe.engine.refresh import MemoryKeeper
from ewe.engine.rewriter import Rewriter
from ewe.engine.sentence_checks import Check, SentenceState, fields_of
from ewe.engine.sequence import Sequence
from ewe.engine.workers import Job, Worker
from ewe.text.search_text import is_small_talk, subject_of
from ewe.text.sentences import code_blocks, is_inside
from ewe.types import Query, ScoredPassage, VerificationRequest


class Action(Enum):
    """What to do with a sequence now."""

    RUN = auto()
    WAIT = auto()
    ENCODE = auto()
    ADD_RETRIEVED = auto()
    APPLY_VERDICTS = auto()
    COMPLETE = auto()


def next_action(sequence: Sequence, optimistic: bool) -> Action:
    """The step that a sequence's state asks for; in optimistic mode checks under way do not hold up decoding.

    A verdict on a text whose memory is recorded comes first: it may make a later retrieval pointless.
    """
    head = sequence.feedback.checks[0] if sequence.feedback.checks else None
    if head is not None and head.snapshot is not None and head.job.done:
        return Action.APPLY_VERDICTS
    if sequence.feedback.retrieval is not None:
        return Action.ADD_RETRIEVED if sequence.feedback.retrieval.done else Action.WAIT
    if sequence.schedule.pending_units:
        return Action.ENCODE
    if head is not None:
        if head.job.done:
            return Action.APPLY_VERDICTS
        if not optimistic or sequence.finish is not None:
            return Action.WAIT
    return Action.RUN if sequence.finish is None else Action.COMPLETE


@dataclass(eq=False)
class Pauses:
    """Opens pauses: asks the policy, submits its retrievals and checks; and ends them when the answers have come.

    retrieval and verification may be None where the policy never asks for them. prompt_passages: puts what the question
    brings into the prompt; None: it becomes units. remembers: whether memories are searched, too, in which "What is my
    name?" finds something.
    """

    policy: Policy
    config: FeedbackConfig
    retrieval: Worker | None
    verification: Worker | None
    keeper: MemoryKeeper
    rewriter: Rewriter
    prompt_passages: PromptPassages | None = None
    remembers: bool = False

    def start(self, sequence: Sequence) -> None:
        """Retrieves with the question, before anything is computed; not for small talk, which passages distract."""
        question = sequence.request.question
        if not self.policy.retrieves or sequence.request.asked.is_plain:
            return
        state = sequence.feedback
        state.is_small_talk = not self.remembers and is_small_talk(question)
        if not state.is_small_talk:
            in_prompt = self.prompt_passages
            if in_prompt is not None and not in_prompt.fits(sequence):
                in_prompt = None
            state.is_of_question = in_prompt is not None
            self._retrieve(sequence, subject_of(question), None if in_prompt is None else in_prompt.most)

    def look(self, sequence: Sequence) -> None:
        """Looks at the draft if the policy is due, and opens the pause that it decides on."""
        if sequence.request.asked.is_plain:
            return
        finished = sequence.finish is not None
        draft = sequence.output_text
        if not finished and not self.policy.is_due(len(draft)):
            return
        if not finished:
            draft.find_sentences()
        view = View(
            sequence.request.question,
            draft,
            sequence.feedback.retrieved,
            sequence.feedback.verified,
            finished,
            sequence.feedback.attempts.keys(),
            sequence.feedback.is_small_talk,
        )
        self._open(sequence, self.policy.look(view))

    def advance(self, sequence: Sequence) -> Action:
        """Works off what has been answered; returns the action that is left, which may be the sequence's end."""
        while True:
            action = next_action(sequence, self.config.mode == "optimistic")
            if action is not Action.RUN:
                sequence.void_placeholder()
            if action is Action.COMPLETE or sequence.schedule.swapped is not None:
                return action
            if action is Action.ENCODE and self.keeper.is_encoded(sequence):
                self.keeper.commit(sequence)
            elif action is Action.ADD_RETRIEVED:
                self._add_retrieved(sequence)
            elif action is Action.APPLY_VERDICTS:
                self.rewriter.apply_verdicts(sequence)
            else:
                self._note(sequence, action)
                return action
            publish(sequence, self.policy.rewrites)

    def _add_retrieved(self, sequence: Sequence) -> None:
        """Ends the finished retrieval; an unsure sentence that asked for it is written again."""
        state, job = sequence.feedback, sequence.feedback.retrieval
        assert job is not None
        found = retrieved_passages(job, self.config.retrieval_threshold)
        record_retrieval(sequence, job, found)
        state.retrieval = None
        if state.is_of_question:
            assert self.prompt_passages is not None
            state.is_of_question = False
            self.prompt_passages.place(sequence, found)
            return
        found = [hit for hit in found if hit.passage.id not in sequence.prompt_passages]
        index, state.rewrite_after_retrieval = state.rewrite_after_retrieval, None
        if index is not None:
            self.rewriter.rewrite_unsure(sequence, index, job.error)
        self.keeper.add_retrieved(sequence, found)

    def _note(self, sequence: Sequence, action: Action) -> None:
        """Notes that a pause is over, or that the sequence waits for verdicts alone from now on."""
        state = sequence.feedback
        if action is Action.RUN:
            if self.config.mode == "optimistic":
                self.keeper.take_snapshots(sequence)
            if state.paused_at is not None:
                sequence.record("resume", waited_s=time.monotonic() - state.paused_at)
                state.paused_at = None
        elif action is Action.WAIT and state.retrieval is None and state.checks_awaited_since is None:
            state.checks_awaited_since = time.monotonic()

    def _open(self, sequence: Sequence, decision: Decision) -> None:
        unchecked_from = sequence.feedback.verified
        if decision.retrieved is not None:
            sequence.feedback.retrieved = decision.retrieved
        if decision.verified is not None:
            sequence.feedback.verified = decision.verified
        verify = _without_code(sequence, decision.verify)
        if self.policy.verifies:
            self._pass_over(sequence, unchecked_from, decision.verify, verify)
        elif self.policy.rewrites:
            self._settle_unverified(sequence)
        waits = [name for name, why in (("retrieval", decision.query), ("verification", verify)) if why]
        if waits:
            sequence.feedback.paused_at = time.monotonic()
            sequence.record("pause", **{"for": waits})
        if decision.query:
            self._retrieve(sequence, decision.query)
            sequence.feedback.rewrite_after_retrieval = decision.rewrite
        if verify:
            self._verify(sequence, verify)

    def _pass_over(self, sequence: Sequence, begin: int, wanted: Batch[int], verify: Batch[int]) -> None:
        """Sentences that the policy looked at are final where it wants no check, and where they are code."""
        for index in range(begin, sequence.feedback.verified):
            if index not in verify:
                reason = CODE if index in wanted else "the trigger did not ask for a check"
                sequence.feedback.set_state(index, SentenceState(reason=reason))

    def _settle_unverified(self, sequence: Sequence) -> None:
        for index in range(sequence.feedback.retrieved):
            if sequence.feedback.state_of(index) is None:
                sequence.feedback.set_state(index, SentenceState(reason="no verifier"))

    def _retrieve(self, sequence: Sequence, query: str, top_k: int | None = None) -> None:
        assert self.retrieval is not None
        sequence.record("retrieving", query=query)
        sequence.feedback.retrieval = self.retrieval.submit(
            Query(query, sequence.request.memory, top_k), self.config.timeout
        )

    def _verify(self, sequence: Sequence, sentences: tuple[int, ...]) -> None:
        assert self.verification is not None
        text, spans = sequence.output_text.text, sequence.output_text.sentences
        asked = partial(VerificationRequest, closed_world=sequence.request.asked.closed_world)
        requests = []
        for index in sentences:
            start, end = spans[index].start, spans[index].end
            requests.append(asked(sequence.request.question, text[:start], text[start:end]))
            attempt = sequence.feedback.attempt_at(start)
            sequence.record("checking", number=index + 1, start=start, end=end, text=text[start:end], attempt=attempt)
        job = self.verification.submit(requests, self.config.timeout)
        sequence.feedback.checks.append(Check(job, sentences, sequence.feedback.retrieved))


def _without_code(sequence: Sequence, sentences: Batch[int]) -> tuple[int, ...]:
    """Those of the sentences, by index, that can hold claims."""
    draft = sequence.output_text
    code = code_blocks(draft.text) if sentences else ()
    return tuple(index for index in sentences if not is_inside(draft.sentences[index].start, code))


def retrieved_passages(job: Job, threshold: float) -> list[ScoredPassage]:
    """What a finished retrieval found over the threshold, best first."""
    return [hit for hit in job.result or () if hit.score > threshold]


def record_retrieval(sequence: Sequence, job: Job, found: Batch[ScoredPassage]) -> None:
    """Notes a finished retrieval in the trace and the counters."""
    listed = [{**fields_of(hit.passage, "id", "title", "source", "veracity"), "score": hit.score} for hit in found]
    extra = {"error": job.error} if job.error else {}
    sequence.record("retrieval", query=job.payload.text, passages=listed, latency_s=job.latency_s, **extra)
    sequence.stats.retrievals += 1
    sequence.stats.retrieval_wait_s += job.latency_s
