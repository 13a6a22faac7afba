"""The sequences that an engine works on: they come, start in their turns, have their policies resumed, and end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ewe.engine.memory_manager import MemoryManager
from ewe.engine.model_executor.out_of_memory import Runner
from ewe.engine.output import complete
from ewe.engine.policy_runtime import wordings
from ewe.engine.policy_runtime.next_action import Action
from ewe.engine.policy_runtime.policy_runner import PolicyRunner
from ewe.engine.scheduling.swapping import ContextSwapper
from ewe.engine.scheduling.turns import Turns
from ewe.engine.sequence import Sequence
from ewe.types import FinishReason, Generation


@dataclass(eq=False)
class ActiveSequences:
    """All sequences of an engine that have not ended, in order of arrival.

    max_num_seqs: how many may wait for their first retrieval at once. runner: tells what a text attended to.
    on_finish: called with each answer's sequence and its result.
    """

    max_num_seqs: int
    policies: PolicyRunner
    memory_manager: MemoryManager
    swapper: ContextSwapper
    runner: Runner
    on_finish: Callable[[Sequence, Generation], None]
    sequences: list[Sequence] = field(default_factory=list, init=False)
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
    def started(self) -> list[Sequence]:
        """Those that have had their turn."""
        return [sequence for sequence in self.sequences if sequence.schedule.is_started]

    def end(self, sequence: Sequence, reason: FinishReason, error: str = "") -> None:
        """Ends a sequence and the answers that wait for its prompt, in whatever state; one that has ended stays so."""
        if sequence.is_finished:
            return
        side = sequence.policy.side
        for text in () if side is None else side.texts:
            self.end(text, reason, error)
        sequence.finish, sequence.error = reason, error
        sequence.output_text.finish()
        self._finish(sequence)

    def expire(self, now: float) -> None:
        """Ends those whose deadline has passed; now: seconds of time.monotonic."""
        bound = [item for item in self.sequences if item.deadline_s is not None]
        for sequence in bound:
            if sequence.deadline is not None and now >= sequence.deadline:
                self.end(sequence, "timeout")

    def start_waiting(self) -> None:
        """Starts requests with their first retrieval, each tenant in its turn: as many as can be admitted together.

        A retriever that got the queries of thousands of requests at once would answer none of them in time.
        """
        waiting = [item for item in self.sequences if not item.schedule.is_started]
        if not waiting:
            return
        started = self.started
        coming = [item for item in started if not item.schedule.is_admitted and not item.policy.is_composed]
        room = self.max_num_seqs - len(coming)
        if room <= 0:
            return
        for sequence in self._turns.order(waiting, started)[:room]:
            self._turns.take(sequence)
            sequence.schedule.is_started = True
            sequence.schedule.queued_s = time.monotonic() - sequence.arrived
            self.policies.start(sequence)

    def advance(self, sequences: list[Sequence]) -> list[tuple[Sequence, Action]]:
        """Those that are not finished then, with what is left to do."""
        actions: list[tuple[Sequence, Action]] = []
        for sequence in sequences:
            action = self.policies.advance(sequence)
            if action == "complete":
                self._finish(sequence)
            elif action == "draw" and sequence.schedule.swapped is None:
                actions += [(side, "run") for side in self._begin_drawing(sequence)]
            else:
                actions.append((sequence, action))
        return actions

    def fork_siblings(self, sequence: Sequence) -> list[Sequence]:
        """The further answers of a request, which share the prompt's blocks and the memory from here on."""
        siblings, sequence.siblings = sequence.siblings, []
        if not siblings:
            return siblings
        for sibling in siblings:
            sibling.table = sequence.table.fork()
            self.memory_manager.fork(sequence, sibling)
            sibling.prompt_scores = sequence.prompt_scores
            sibling.schedule.is_started = sibling.schedule.is_admitted = True
            sibling.trace.extend(sequence.trace)
            self.policies.start(sibling, is_first=False)
        position = self.sequences.index(sequence) + 1
        self.sequences[position:position] = siblings
        return siblings

    def _begin_drawing(self, sequence: Sequence) -> list[Sequence]:
        """The sequences that draw the wordings that a sequence waits for; they come right after it."""
        assert sequence.policy.drawing is not None
        sides = wordings.begin(sequence, sequence.policy.drawing, self.memory_manager)
        position = self.sequences.index(sequence) + 1
        self.sequences[position:position] = sides
        return sides

    def _finish(self, sequence: Sequence) -> None:
        if sequence.is_finished:
            return
        if sequence.wants_attention and sequence.schedule.swapped is None and sequence.finish in ("stop", "length"):
            num_read = len(sequence.request.prompt_ids) + max(len(sequence.output_text) - 1, 0)
            slots = sequence.table.slots()[:num_read]
            sequence.attention = self.runner.text_attention(slots, len(sequence.request.prompt_ids))
        if sequence.wording_task is not None:
            self._leave(sequence)
            if sequence.finish == "error":  # the text that it was drawn for fails without it
                self.end(sequence.wording_task.main, "error", sequence.error)
            return
        self.policies.close(sequence)
        generation = complete(sequence)
        self._leave(sequence)
        if sequence.parent is None:
            self.on_finish(sequence, generation)
        else:
            self.policies.take_replies(sequence.parent)
        drawing = sequence.policy.drawing
        # Those that wait for its prompt, and those that draw for it, end with it.
        for other in (*sequence.siblings, *(drawing.sides if drawing is not None else ())):
            self.end(other, sequence.finish or "error", sequence.error)

    def _leave(self, sequence: Sequence) -> None:
        """Gives back all that a sequence holds."""
        sequence.is_finished = True
        self.swapper.release(sequence)
        self.sequences = [item for item in self.sequences if item is not sequence]
