"""Prompts that are only scored: their labels, and that who waits for one while it holds places and blocks gets it."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from engine_parts import Judge, Library, sentences
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mock_engine import ALPHABET, Bench

from ewe.config import Config
from ewe.engine.request import Request
from ewe.engine.sampling.sampler import Drawing
from ewe.engine.scheduling import inflight_batch
from ewe.errors import InvalidRequestError
from ewe.types import VerificationRequest, VerificationResult
from ewe.types.sampling_params import SamplingParams

LABELS = (7, 3, 12)
ASKED = SamplingParams(max_tokens=1, logprobs=len(LABELS))


def config(
    mode: str = "blocking", max_num_seqs: int = 4, tokens: int = 64, ahead: bool = False, **feedback: object
) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 2}
    scheduler = {"max_num_seqs": max_num_seqs, "max_num_batched_tokens": tokens, "async_scheduling": ahead}
    values = {"memory": memory, "cache": {"block_size": 4}, "scheduler": scheduler}
    return Config.from_mapping({**values, "feedback": {"mode": mode, "timeout": 3.0, **feedback}})


class AskingJudge(Judge):
    """A verifier that has the engine score every sentence before it answers, as the base judge does."""

    bench: AskingBench

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        for request in requests:
            self.bench.score(request.sentence)
        return super().verify(requests)


class AskingBench(Bench):
    """A bench whose verifier hands requests to the loop from a thread of its own."""

    def __init__(self, settings_: Config, judge: Judge, num_blocks: int) -> None:
        super().__init__(settings_, Library(), judge, sentences, num_blocks)
        self.runner.strength = 6.0
        self._inbox: deque[Request] = deque()
        self._scored: queue.SimpleQueue[dict[int, float]] = queue.SimpleQueue()
        self._count = 0

    def score(self, text: str) -> None:
        prompt = [max(ALPHABET.find(char), 1) for char in text]
        self._inbox.append(Request(prompt, ASKED, is_plain=True, label_token_ids=LABELS))
        self.engine.changed.set()
        assert set(self._scored.get(timeout=60)) == set(LABELS)

    def _on_finish(self, sequence, generation) -> None:
        if sequence.is_scored:
            self._scored.put(generation.top_logprobs[0])
        else:
            super()._on_finish(sequence, generation)

    def run(self, max_steps: int = 20_000):
        for _ in range(max_steps):
            while self._inbox:
                self._count += 1
                self.core.active.add(self.engine.input_processor.build(f"score-{self._count}", self._inbox.popleft()))
            if not self.core.step():
                break
            self.check()
        return self.finished


def write(settings_: Config, judge: Judge, num_blocks: int) -> list[tuple[object, ...]]:
    bench = AskingBench(settings_, judge, num_blocks)
    if isinstance(judge, AskingJudge):
        judge.bench = bench
    for number in range(4):
        bench.add(f"r{number}", f"question {number}:", SamplingParams(max_tokens=30, temperature=0.8, seed=number))
    found = bench.run()
    bench.core.close()
    return [
        (answer.text, [(item.text, item.verdict, item.reason) for item in answer.sentences], answer.finish_reason)
        for _, answer in sorted(found.items())
    ]


@pytest.fixture(scope="module")
def expected() -> list[tuple[object, ...]]:
    """What is written where nobody has to ask, and nothing is short."""
    return write(config(), Judge(), 400)


@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
@settings(max_examples=2)
@given(seqs=st.integers(1, 4), num_blocks=st.integers(75, 90))
@example(seqs=4, num_blocks=75)  # all wait, and there are no blocks left for the youngest
def test_whoever_waits_for_a_score_gets_it(
    expected: list[tuple[object, ...]], mode: str, seqs: int, num_blocks: int
) -> None:
    """Every place is taken and blocks are short: sentences are checked all the same, with the same results."""
    found = write(config(mode, seqs), AskingJudge(), num_blocks)
    assert found == expected


def test_labels_are_scored_by_what_the_model_says_after_the_whole_prompt() -> None:
    """In parts, without a place of its own, under the model's distribution over all tokens."""
    bench = Bench(config(max_num_seqs=1, tokens=40), verifier=Judge(), script=sentences)
    prompt = [1 + number % 40 for number in range(90)]
    bench.core.active.add(bench.engine.input_processor.build("text", Request("who:", SamplingParams(max_tokens=20))))
    for _ in range(3):
        bench.core.step()
    bench.runner.rows_run.clear()
    asked = Request(prompt, ASKED, is_plain=True, label_token_ids=LABELS)
    bench.core.active.add(bench.engine.input_processor.build("score", asked))
    while ("score", 0) not in bench.finished:
        bench.core.step()
    parts = [row for rows in bench.runner.rows_run for row in rows if row.start_position + len(row.token_ids) <= 90]
    assert [len(row.token_ids) for row in parts if len(row.token_ids) > 1] == [39, 39, 12]
    last = next(row for row in parts if row.start_position == 78)
    answer = bench.finished["score", 0]
    logprobs = torch.log_softmax(bench.runner._logits(last), -1)
    assert answer.top_logprobs == ({label: pytest.approx(float(logprobs[label])) for label in LABELS},)
    assert answer.token_ids == (max(LABELS, key=lambda label: float(logprobs[label])),)


def test_a_score_is_read_where_tokens_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text beside it has its draw on the way by then, and the next pass too; that one leaves the prompt alone."""
    events: list[str] = []
    bench = Bench(config(ahead=True), script=sentences)
    forward, sample, score = bench.runner.forward, inflight_batch.sample, inflight_batch.score_labels

    def noted(drawing: Drawing, name: str) -> Drawing:
        return replace(drawing, read=lambda: (events.append(name), drawing.read())[1])

    monkeypatch.setattr(bench.runner, "forward", lambda *rest: (events.append("pass"), forward(*rest))[1])
    monkeypatch.setattr(inflight_batch, "sample", lambda *rest: (events.append("draw"), sample(*rest))[1])
    monkeypatch.setattr(inflight_batch, "score_labels", lambda *rest: noted(score(*rest), "read the score"))
    bench.core.active.add(bench.engine.input_processor.build("text", Request("who:", SamplingParams(max_tokens=20))))
    for _ in range(3):
        bench.core.step()
    bench.runner.rows_run.clear()
    events.clear()
    asked = Request([1, 2, 3], replace(ASKED, max_tokens=2), is_plain=True, label_token_ids=LABELS)
    bench.core.active.add(bench.engine.input_processor.build("score", asked))
    for _ in range(3):
        bench.core.step()
    assert events[:5] == ["pass", "draw", "pass", "draw", "read the score"]
    assert [len(rows) for rows in bench.runner.rows_run][:2] == [2, 1]


def test_a_label_that_is_no_token_is_refused() -> None:
    bench = Bench(config())
    with pytest.raises(InvalidRequestError, match="label_token_ids"):
        bench.engine.input_processor.build("score", Request([1, 2], ASKED, label_token_ids=(len(ALPHABET),)))


def test_a_prompt_is_scored_once() -> None:
    asked = Request([1, 2], SamplingParams(max_tokens=1, n=2), label_token_ids=LABELS)
    with pytest.raises(InvalidRequestError, match="set n to 1"):
        Bench(config()).engine.input_processor.build("score", asked)


def test_numbers_that_are_not_finite_fail_the_score_alone() -> None:
    bench = Bench(config())
    bench.runner.nan_if = lambda context: context.startswith("abc")
    for name in ("abcd", "efgh"):
        asked = Request(name, ASKED, is_plain=True, label_token_ids=LABELS)
        bench.core.active.add(bench.engine.input_processor.build(name, asked))
    found = bench.run()
    assert [found[name, 0].finish_reason for name in ("abcd", "efgh")] == ["error", "length"]
