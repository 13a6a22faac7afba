"""Does what policies yield: each effect by the part of the engine that it is for."""

import time
from dataclasses import dataclass
from typing import Any

from ewe.config import FeedbackConfig
from ewe.engine import effects
from ewe.engine.evidence.workers import Worker
from ewe.engine.inputs.prompt_passages import PromptPassages
from ewe.engine.memory_manager import MemoryManager
from ewe.engine.output import record_checking
from ewe.engine.policy_runtime import wordings
from ewe.engine.policy_runtime.quoting import Quoter
from ewe.engine.policy_runtime.rewind import Rewinder
from ewe.engine.policy_runtime.side_runner import SideRunner
from ewe.engine.policy_state import Check
from ewe.engine.sequence import Sequence
from ewe.types import Lane, Query


@dataclass(eq=False)
class EffectRunner:
    """Does what the policies of an engine's sequences yield.

    retrieval and verification may be None where the policy never asks for them. side: does what is asked for beside the
    text. prompt_passages: puts passages into prompts; None: they become units.
    """

    config: FeedbackConfig
    retrieval: Worker | None
    verification: Worker | None
    memory_manager: MemoryManager
    side: SideRunner
    prompt_passages: PromptPassages | None = None

    def __post_init__(self) -> None:
        self._rewinder = Rewinder(self.memory_manager)
        self._quoter = Quoter(self._rewinder, self.side.prompts.encode)

    def do(self, sequence: Sequence, effect: object) -> Any:
        """Does what a policy has yielded; returns the result."""
        match effect:
            case effects.Retrieve() | effects.Verify():
                sequence.policy.queued_effects.append(effect)
            case effects.Remember():
                return self._remember(sequence, effect)
            case effects.Forget():
                self.memory_manager.clear(sequence)
            case effects.Rewind(index, reason):
                self._rewinder.rewind(sequence, index, reason)
            case effects.Restore(index, attempt, reason):
                self._rewinder.restore(sequence, index, attempt, reason)
            case effects.Quote(index, quotation):
                return self._quoter.quote(sequence, index, quotation)
            case effects.Draw(index, count):
                wordings.ask(sequence, index, count)
            case effects.Judge(drawn, wants_answers):
                wordings.judge(sequence, drawn, self.verification, self.config.timeout, wants_answers)
            case effects.Take(index, judged, chosen):
                wordings.take(sequence, index, judged.wordings, chosen, judged.job)
            case effects.End():
                sequence.end_text(stopped=True)
            case _:
                return self.side.do(sequence, effect)
        return None

    def _remember(self, sequence: Sequence, effect: effects.Remember) -> bool:
        copies = self.memory_manager.copies is not None and effect.lane is Lane.RETRIEVAL
        if effect.hits and not (effect.in_prompt or copies or sequence.request.has_memory):
            raise ValueError(
                "Remember: the text stands where units would: its @policy must say retrieves=True or verifies=True, "
                "and the engine must have a retriever or a verifier for it"
            )
        if effect.in_prompt:
            if self.prompt_passages is None or sequence.schedule.is_admitted:
                raise ValueError("Remember: there is no place in the prompt, or it has been read")
            self.prompt_passages.place(sequence, effect.hits)
        elif effect.lane is Lane.RETRIEVAL:
            new = [hit for hit in effect.hits if hit.passage.id not in sequence.prompt_passages]
            self.memory_manager.add_retrieved(sequence, new)
        else:
            self.memory_manager.plan(sequence, effect.hits, effect.lane)
        return bool(sequence.schedule.pending_units)

    def submit(self, sequence: Sequence) -> None:
        """Submits what a policy has asked for since it last wrote: one pause, once there is a text to pause.

        Raises ValueError for what nobody can answer.
        """
        queued, sequence.policy.queued_effects = sequence.policy.queued_effects, []
        if queued and sequence.schedule.is_admitted:
            sequence.policy.paused_at = time.monotonic()
            names = ["retrieval" if isinstance(effect, effects.Retrieve) else "verification" for effect in queued]
            sequence.record("pause", **{"for": names})
        for effect in queued:
            if isinstance(effect, effects.Retrieve):
                self._retrieve(sequence, effect)
            else:
                self._verify(sequence, effect)

    def _retrieve(self, sequence: Sequence, effect: effects.Retrieve) -> None:
        if self.retrieval is None or sequence.policy.retrieval is not None:
            raise ValueError("Retrieve: there is no retriever, or one retrieval is under way")
        sequence.record("retrieving", query=effect.query)
        query = Query(effect.query, sequence.request.memory, effect.top_k)
        sequence.policy.retrieval = self.retrieval.submit(query, self.config.timeout)

    def _verify(self, sequence: Sequence, effect: effects.Verify) -> None:
        if self.verification is None:
            raise ValueError("Verify: there is no verifier")
        text, spans = sequence.output_text.text, sequence.output_text.sentences
        requests = []
        for index in effect.sentences:
            start, end = spans[index].start, spans[index].end
            asked = wordings.verification_request(sequence, text[:start], text[start:end], effect.wants_answers)
            requests.append(asked)
            record_checking(sequence, index)
        job = self.verification.submit(requests, self.config.timeout)
        retrieved = sequence.feedback.progress.retrieved
        sequence.policy.checks.append(Check(job, effect.sentences, effect.wait, retrieved))
