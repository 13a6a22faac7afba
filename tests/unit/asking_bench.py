"""A mock engine whose policy has texts written beside the answer; its workers are real threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mock_engine import Bench

from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.effects import Policy
from ewe.engine.request import Request
from ewe.engine.sequence import Sequence
from ewe.engine.side_texts import Asking
from ewe.types import Generation
from ewe.types.sampling_params import SamplingParams


def scripted(steps: Callable[[str], Asking], composes: bool = False) -> Policy:
    """A policy from a generator function of the question, which may ask and have texts checked."""
    return Policy(lambda answer, settings: steps(answer.question), asks=True, verifies=True, composes=composes)


class AskingBench(Bench):
    """An engine with a policy in place of that of the settings, if one is given, which also asks."""

    def __init__(self, config: Config, policy: Policy | None, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        if policy is not None:
            self.core.policies.policy = policy

    def _on_finish(self, sequence: Sequence, generation: Generation) -> None:
        assert (sequence.request.id, sequence.index) not in self.finished, "an answer comes twice"
        super()._on_finish(sequence, generation)

    def ask(
        self,
        name: str,
        prompt: Any = "q:",
        params: SamplingParams | None = None,
        listener: Callable[[StreamEvent], None] | None = None,
        **options: Any,
    ) -> Sequence:
        request = Request(prompt, params or SamplingParams(max_tokens=40), listener=listener, **options)
        self.core.policies.check(request)
        sequence: Sequence = self.engine.input_processor.build(name, request)
        self.core.active.add(sequence)
        return sequence

    def turn(self) -> None:
        """One turn of the loop."""
        self.core.step()
        self.check()

    def finish(self) -> dict[tuple[str, int], Generation]:
        """Turns until every answer is there."""
        while self.core.active.sequences:
            self.turn()
        return self.finished
