"""Benches for tests of the engine: KV that depends on its history, gates for answers, a reader of the stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import torch
from engine_parts import number
from hypothesis import strategies as st
from mock_engine import ALPHABET, Bench, MockRunner

from ewe.config import Config
from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.engine.evidence.workers import Job
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow
from ewe.types import Generation


class DeepRunner(MockRunner):
    """A "model" whose KV is like a real one's: each token's depends on all that was visible when it was computed.

    So the text shows whether a token was computed under another memory, or after other tokens, than it should.
    """

    vocabulary: Sequence[str] = ALPHABET

    def forward(self, rows: Sequence[ForwardRow], draws: object = None) -> ForwardResult:
        rows = self._begin(rows)
        for row in rows:
            self._compute(row)
        logits = [self._logits(row) for row in rows if row.wants_logits]
        empty = torch.empty(0, len(self.vocabulary))
        return ForwardResult(torch.stack(logits) if logits else empty, [None] * len(rows))

    def _compute(self, row: ForwardRow) -> None:
        units = [self._read(slots) for slots in row.memory_slots]
        slots = row.context_slots.tolist()
        first = len(slots) - len(row.token_ids)
        ids, states = self._read(row.context_slots[:first])
        for place, token_id in enumerate(row.token_ids):
            seen = number(ids, states, units, row.unit_weights, token_id, row.start_position + place)
            ids.append(token_id)
            states.append(seen % (1 << 20))
            self.keys[slots[first + place], 0, 0] = token_id
            self.values[slots[first + place], 0, 0] = states[-1]

    def _logits(self, row: ForwardRow) -> torch.Tensor:
        ids, states = self._read(row.context_slots)
        units = [self._read(slots) for slots in row.memory_slots]
        context = "".join(self.vocabulary[i] for i in ids)
        if self.nan_if(context):
            return torch.full((len(self.vocabulary),), float("nan"))
        generator = torch.Generator().manual_seed(number(ids, states, units, row.unit_weights))
        logits = torch.randn(len(self.vocabulary), generator=generator)
        if self.script is not None:
            seen = units[len(units) - len(row.unit_slots) :]
            memory = tuple("".join(self.vocabulary[i] for i in unit_ids) for unit_ids, _ in seen)
            # The states make the choice depend on how the context came about.
            logits[self.vocabulary.index(self.script(context, (*memory, str(states[-1]))))] += self.strength
        return logits


@dataclass(frozen=True)
class Latencies:
    """After how many steps each answer comes; a component's n-th job takes its n-th number, over and over."""

    retrieval: Sequence[int] = (0,)
    verification: Sequence[int] = (0,)


# Retrievals come soon; verdicts at once, late, or when the text has long gone on.
LATENCIES = st.builds(
    Latencies,
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.lists(st.sampled_from([0, 1, 3, 10, 30, 60]), min_size=1, max_size=5),
)


class GatedWorker:
    """Stands in for a Worker: a job is answered when the test releases it, on the test's own thread."""

    def __init__(self, call: Callable[[list[Any]], Sequence[Any]]) -> None:
        self._call = call
        self.jobs: list[Job] = []
        self.clock = 0
        self._submitted = 0
        self._origins: list[tuple[int, int]] = []  # per open job: its number and when it came

    def submit(self, payload: Any, timeout_s: float) -> Job:
        job = Job(payload, math.inf)
        self.jobs.append(job)
        self._origins.append((self._submitted, self.clock))
        self._submitted += 1
        return job

    def release(self, position: int = 0) -> None:
        job = self.jobs.pop(position)
        self._origins.pop(position)
        try:
            job.settle(self._call([job.payload])[0])
        except ConnectionError as error:
            job.settle(error=f"failed: {error}")

    def release_due(self, latencies: Sequence[int]) -> None:
        for position in reversed(range(len(self.jobs))):
            number_, born = self._origins[position]
            if self.clock - born >= latencies[number_ % len(latencies)]:
                self.release(position)

    def abandon_overdue(self, now: float) -> None:
        pass

    def next_deadline(self) -> float | None:
        return None

    def close(self) -> None:
        pass


class GatedBench(Bench):
    """A bench whose retriever and verifier answer in an order that the test chooses."""

    runner_type = DeepRunner

    def __init__(self, config: Config, *args: Any, **options: Any) -> None:
        super().__init__(config, *args, **options)
        runner = self.core.policies.effect_runner
        self.retrieval = GatedWorker(runner.retrieval._call) if runner.retrieval else None
        self.verification = GatedWorker(runner.verification._call) if runner.verification else None
        runner.retrieval, runner.verification = self.retrieval, self.verification  # type: ignore[assignment]
        self.core.workers = ()

    def open_jobs(self) -> list[tuple[GatedWorker, int]]:
        gates = [gate for gate in (self.retrieval, self.verification) if gate is not None]
        return [(gate, position) for gate in gates for position in range(len(gate.jobs))]

    def step(self) -> bool:
        for gate in (self.retrieval, self.verification):
            if gate is not None:
                gate.clock += 1
        self.engine.changed.set()  # a step without work does not wait
        return self.core.step()

    def run_prompt(self) -> dict[tuple[str, int], Generation]:
        """To the end, with every answer there at once."""
        for _ in range(20_000):
            for gate, _position in self.open_jobs():
                gate.release()
            if not self.step():
                self.check()
                return self.finished
        raise AssertionError("the engine did not come to an end")

    def release_due(self, latencies: Latencies) -> None:
        if self.retrieval is not None:
            self.retrieval.release_due(latencies.retrieval)
        if self.verification is not None:
            self.verification.release_due(latencies.verification)

    def run_with(self, latencies: Latencies) -> dict[tuple[str, int], Generation]:
        """To the end, with answers that take their time; checked after every step."""
        for _ in range(20_000):
            self.release_due(latencies)
            going_on = self.step()
            self.check()
            if not going_on:
                return self.finished
        raise AssertionError("the engine did not come to an end")

    def run_late(self, schedule: Iterable[int]) -> dict[tuple[str, int], Generation]:
        """To the end; each number of the schedule is one step: 0 releases nothing, n the n-th open job.

        After the schedule one job is released per step.
        """
        for choice in chain(schedule, repeat(1, 20_000)):
            jobs = self.open_jobs()
            if choice and jobs:
                gate, position = jobs[(choice - 1) % len(jobs)]
                gate.release(position)
            going_on = self.step()
            self.check()
            if not going_on:
                return self.finished
        raise AssertionError("the engine did not come to an end")


class Reader:
    """A listener that checks the stream's promises: under a policy that rewrites, only what is final is sent as text.

    Drafts, cut by rewinds, are the text at any moment; what is announced as under way comes to an end.
    """

    def __init__(self, rewrites: bool = True) -> None:
        self.events: list[StreamEvent] = []
        self.text = ""
        self.draft = ""
        self.final = 0
        self.checking: dict[int, Mapping[str, Any]] = {}
        self.is_retrieving = False
        self._rewrites = rewrites
        self._judged: set[tuple[int, str, str]] = set()

    def __call__(self, event: StreamEvent) -> None:
        self.events.append(event)
        data = event.data
        self._follow(event)
        if event.kind == "verification":
            self._judged.add((data["start"], data["text"], data["verdict"]))
        elif event.kind == "sentence":
            assert data["start"] >= self.final, "a sentence that was final comes again"
            self.final = data["end"]
            judged = (data["start"], data["text"], data["verdict"]) in self._judged
            assert judged or data["verdict"] == "not_checked", "a verdict that no check has given"
        elif event.kind == "rewind":
            assert data["start"] >= max(len(self.text), self.final), "text that was final is taken back"
        elif event.kind == "text":
            self.text += data["text"]
            assert not self._rewrites or len(self.text.rstrip()) <= self.final, "text is sent before it is final"

    def _follow(self, event: StreamEvent) -> None:
        """Takes in what a reader of drafts does, and what is under way."""
        data = event.data
        if event.kind == "draft":
            assert data["start"] == len(self.draft), "a draft goes on where the text ends"
            self.draft += data["text"]
        elif event.kind == "rewind":
            assert data["kept_chars"] <= data["start"]
            assert self.draft[data["start"] :].startswith(data["text"])
            assert all(start >= data["start"] for start in self.checking), "an earlier check is still open"
            self.draft, self.checking, self.is_retrieving = self.draft[: data["kept_chars"]], {}, False
        elif event.kind == "checking":
            assert data["text"] == self.draft[data["start"] : data["end"]], "what is checked has been shown"
            assert data["start"] not in self.checking
            self.checking[data["start"]] = data
        elif event.kind == "verification":
            begun = self.checking.pop(data["start"])
            assert {**data, **begun} == {**begun, **data}, "it tells the same sentence and attempt"
        elif event.kind == "sentence":
            self.checking.pop(data["start"], None)
        elif event.kind in ("retrieving", "retrieval"):
            assert self.is_retrieving == (event.kind == "retrieval")
            self.is_retrieving = event.kind == "retrieving"
        elif event.kind == "finish":
            assert self.draft == event.generation.text
            assert not self.checking

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]
