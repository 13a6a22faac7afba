"""A mock engine that runs a pipeline, stepped by hand; its workers are real threads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mock_engine import Bench, CharTokenizer, CharUnits

from ewe.config import Config
from ewe.engine.core import EngineCore
from ewe.engine.request import Request
from ewe.engine.sequence import Sequence
from ewe.engine.stream_events import StreamEvent
from ewe.pipelines.driver import PipelineDriver
from ewe.policies.steps import Pipeline, Steps
from ewe.types import Generation
from ewe.types.sampling_params import SamplingParams


class Scripted:
    """A pipeline from a generator function."""

    def __init__(self, steps: Callable[[str], Steps], composes: bool = False) -> None:
        self.composes = composes
        self.run = steps


class PipelineBench(Bench):
    """What EngineClient and EngineLoop do for a pipeline, without their thread."""

    def __init__(self, config: Config, pipeline: Pipeline, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        units: Any = CharUnits(config.memory.unit_tokens)
        loaded = replace(self.engine.loaded, tokenizer=CharTokenizer())
        self.engine = replace(self.engine, loaded=loaded, unit_tokenizer=units)
        self.inbox: deque[Callable[[EngineCore], Any]] = deque()
        self.driver: PipelineDriver | None = None
        self.driver = PipelineDriver(pipeline, self.engine, self.inbox.append, self._on_finish)

    def _on_finish(self, sequence: Sequence, generation: Generation) -> None:
        if self.driver is None or not self.driver.take(sequence, generation):
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
        assert self.driver is not None
        params = params or SamplingParams(max_tokens=40)
        self.driver.check(prompt, params, None)
        sequence: Sequence = self.engine.input_processor.build(
            name, Request(prompt, params, listener=listener, **options)
        )
        for answer in (sequence, *sequence.siblings):
            answer.listener = listener
        self.num_expected = getattr(self, "num_expected", 0) + params.n
        self.driver.start(sequence)
        return sequence

    def turn(self) -> None:
        """One turn of the loop."""
        while self.inbox:
            self.inbox.popleft()(self.core)
        if self.core.is_busy:
            self.core.step()
            self.check()

    def finish(self) -> dict[tuple[str, int], Generation]:
        """Turns until every answer is there."""
        end = time.monotonic() + 60
        while len(self.finished) < self.num_expected:
            assert time.monotonic() < end, "the answers do not come"
            self.turn()
        self.check()
        return self.finished
