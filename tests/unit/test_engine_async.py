"""Passes launched before the tokens of the pass before are read: in which order things happen, and when not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from engine_bench import GatedBench, Latencies, Reader
from engine_parts import Judge, Library, number, sentences, words
from mock_engine import Bench

from ewe.config import Config
from ewe.engine.model_executor.model_runner import ForwardResult, ForwardRow
from ewe.engine.sampling.sampler import Drawing, Token
from ewe.engine.scheduling import inflight_batch
from ewe.types import Evidence, Passage, Verdict, VerificationResult
from ewe.types.sampling_params import SamplingParams


def config(ahead: bool = True, **groups: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping(
        {"memory": memory, "cache": {"block_size": 4}, "scheduler": {"async_scheduling": ahead}, **groups}
    )


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happened: "launch N" for the N-th pass that draws tokens, "read N" when they are read."""
    happened: list[str] = []
    sample = inflight_batch.sample

    def spy(*arguments: Any) -> Drawing:
        drawing, number = sample(*arguments), sum(item.startswith("launch") for item in happened)
        happened.append(f"launch {number}")

        def read() -> list[Token]:
            happened.append(f"read {number}")
            return drawing.read()

        return Drawing(drawing.ids, read)

    monkeypatch.setattr(inflight_batch, "sample", spy)
    return happened


def in_order(count: int) -> list[str]:
    """Every pass is read before the next is launched."""
    return [f"{what} {number}" for number in range(count) for what in ("launch", "read")]


def overlapping(count: int) -> list[str]:
    """Every pass is launched before the one before it is read."""
    pairs = [item for number in range(1, count) for item in (f"launch {number}", f"read {number - 1}")]
    return ["launch 0", *pairs, f"read {count - 1}"]


@pytest.mark.parametrize(("ahead", "expected"), [(True, overlapping(9)), (False, in_order(9))])
def test_a_pass_is_launched_before_the_last_one_is_read(log: list[str], ahead: bool, expected: list[str]) -> None:
    bench = Bench(config(ahead), None, None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=9))
    bench.add("b", "who", SamplingParams(max_tokens=6))
    results = bench.run()
    assert log == expected
    assert [results[name, 0].stats.tokens_kept for name in "ab"] == [9, 6]


@pytest.mark.parametrize(
    "look_back",
    [{"presence_penalty": 0.5}, {"frequency_penalty": 0.1}, {"repetition_penalty": 1.2}],
    ids=lambda options: next(iter(options)),
)
def test_a_draw_that_depends_on_the_tokens_before_waits_for_them(log: list[str], look_back: dict[str, float]) -> None:
    bench = Bench(config(), None, None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=7))
    bench.add("b", "who", SamplingParams(max_tokens=4, **look_back))
    results = bench.run()
    # While the second answer is written, all wait with it; then the first goes on alone.
    assert log[:8] == in_order(4)
    assert log[8:] == [item.replace(item[-1], str(int(item[-1]) + 4)) for item in overlapping(3)]
    alone = Bench(config(False), None, None, sentences)
    alone.add("b", "who", SamplingParams(max_tokens=4, **look_back))
    assert alone.run()["b", 0].token_ids == results["b", 0].token_ids


def test_a_request_that_looks_back_joins_one_that_is_ahead(log: list[str]) -> None:
    """The pass that has to be read at once is not read before the one that was launched earlier."""
    bench = Bench(config(), None, None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=12))
    for _ in range(4):
        bench.core.step()
    bench.add("b", "who", SamplingParams(max_tokens=3, presence_penalty=0.5))
    results = bench.run()
    reads = [item for item in log if item.startswith("read")]
    assert reads == [f"read {number}" for number in range(12)]
    alone = Bench(config(False), None, None, sentences)
    alone.add("a", "Tell me", SamplingParams(max_tokens=12))
    assert alone.run()["a", 0].logprobs == results["a", 0].logprobs


def test_what_was_computed_beyond_the_end_of_a_text_is_no_part_of_it() -> None:
    """The end token is known only when the next pass has been launched."""
    bench = Bench(config(), None, None, words("abc"))
    bench.add("a", "Say:", SamplingParams(max_tokens=50))
    rows = _rows_of(bench)
    generation = bench.run()["a", 0]
    assert generation.text == "abc"
    assert generation.finish_reason == "stop"
    assert generation.stats.tokens_kept == len(generation.token_ids) == 4
    assert rows == 1 + 4  # the prompt, the three letters, and the end token in vain


def _rows_of(bench: Bench) -> int:
    bench.run()
    return sum(row.wants_logits for rows in bench.runner.rows_run for row in rows)


def test_a_token_drawn_during_a_pause_is_drawn_again_under_the_new_memory() -> None:
    """A refuted sentence: the token after it was drawn before the verdict, and the row is run again."""
    verdicts = Judge(lambda sentence: Verdict.REFUTED if sentence == "Aa." else Verdict.SUPPORTED)
    found = {}
    for ahead in (False, True):
        bench = GatedBench(config(ahead), Library(), verdicts, sentences)
        reader = Reader()
        bench.add("a", "Tell me", SamplingParams(max_tokens=60, logprobs=3), listener=reader)
        generation = bench.run_prompt()["a", 0]
        assert reader.text == generation.text
        found[ahead] = (generation.text, generation.logprobs, generation.top_logprobs, generation.stats.rewrites)
        rows = [row for rows in bench.runner.rows_run for row in rows if row.wants_logits]
        found[ahead, "rows"] = len(rows)
    assert found[True] == found[False]
    assert found[True, "rows"] > found[False, "rows"]


class Stubborn(Judge):
    """Names the same evidence against every sentence, so that a second refutation brings no news."""

    def _judge(self, sentence: str) -> VerificationResult:
        result, passage = super()._judge(sentence), Passage("always", "the same")
        claims = tuple(replace(claim, evidence_ids=(passage.id,)) for claim in result.claims)
        return VerificationResult(claims, (Evidence(passage, result.verdict, 1.0),))


def mostly_refuted(sentence: str) -> Verdict:
    return Verdict.SUPPORTED if number(sentence) % 3 == 0 else Verdict.REFUTED


@pytest.mark.parametrize("prompt", ["Tell me", "of a", "who is it", "what"])
def test_the_tokens_after_a_sentence_that_is_drawn_hot_are_not(prompt: str) -> None:
    """Which token ends the sentence, and with it the raised temperature, is known only when it is read."""
    found = []
    for ahead, mode, latencies in (
        (False, "blocking", Latencies()),
        (True, "blocking", Latencies()),
        (True, "optimistic", Latencies((0,), (9, 0, 30))),
    ):
        feedback = {"mode": mode, "verify_every": 1, "max_attempts": 4, "retry_temperature": 1.5}
        bench = GatedBench(config(ahead, feedback=feedback), None, Stubborn(mostly_refuted), sentences)
        bench.runner.strength = 6.0
        bench.add("a", prompt, SamplingParams(max_tokens=120))
        generation = bench.run_with(latencies)["a", 0]
        found.append((generation.text, generation.logprobs, generation.stats.rewrites))
    assert found[0] == found[1] == found[2]
    assert found[0][2] > 2


class FailingRunner:
    """Raises at the n-th pass."""

    def __init__(self, runner: Any, number: int) -> None:
        self._runner, self._left = runner, number

    def close(self) -> None:
        pass

    def forward(self, rows: Sequence[ForwardRow], draws: object = None) -> ForwardResult:
        self._left -= 1
        if self._left == 0:
            raise RuntimeError("out of order")
        result: ForwardResult = self._runner.forward(rows)
        return result


def test_a_pass_that_fails_while_another_is_under_way_fails_its_requests_alone() -> None:
    bench = Bench(config(), None, None, sentences)
    bench.core.runner = FailingRunner(bench.runner, 4)
    bench.add("a", "Tell me", SamplingParams(max_tokens=9))
    for _ in range(4):
        bench.core.step()
        bench.check()
    failed = bench.finished["a", 0]
    assert (failed.finish_reason, failed.error) == (
        "error",
        "the forward pass failed: RuntimeError: out of order",
    )
    bench.add("b", "who", SamplingParams(max_tokens=5))
    assert bench.run()["b", 0].stats.tokens_kept == 5
