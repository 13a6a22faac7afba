"""Policies of plugins: generators that the engine runs; a fault in one ends its request and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_bench import GatedBench, Reader
from engine_parts import Judge, Library, Notebook, words
from mock_engine import Bench

from ewe.config import Config, FeedbackConfig, registry
from ewe.engine.effects import Paused, Remember, Retrieve, Retrieved, Rewind, Steps, Verify, Write, policy
from ewe.engine.policy_answer import Answer
from ewe.errors import ConfigError
from ewe.types import Verdict
from ewe.types.sampling_params import SamplingParams

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "plugins.md"
TEXT = "Aa bb. Cc dd. Ee ff."
closed: list[str] = []


@policy(retrieves=True)
def each_sentence(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Retrieves with every sentence."""
    try:
        while True:
            yield Write(every=(1,))
            if len(answer.sentences) > answer.progress.retrieved and not answer.is_finished:
                answer.progress.retrieved = len(answer.sentences)
                yield Retrieve(answer.words(len(answer.sentences) - 1))
                found = yield Write()
                assert isinstance(found, Retrieved)
                yield Remember(found.hits)
    finally:
        closed.append(answer.question)


@policy(retrieves=True)
def faulty(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Fails at the second sentence of some texts."""
    while True:
        yield Write(every=(1,))
        if len(answer.sentences) == 2 and "bad" in answer.question:
            yield Retrieve("before")
            raise KeyError("no such thing")


@policy(retrieves=True)
def at_once(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Fails before anything is written, in the first answer or in others."""
    if answer.is_first == ("first" in answer.question):
        raise ValueError("not today")
    yield Write()


@policy(retrieves=True)
def nonsense(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Yields what is no effect."""
    yield "write"  # type: ignore[misc]


@policy(retrieves=True, verifies=True, rewrites=True)
def without_waiting(answer: Answer, settings: FeedbackConfig) -> Steps:
    """Has the first sentence checked while the text goes on, and is told as the result of a later yield."""
    told: list[Any] = []
    while not told:
        happened = yield Write(every=(1,))
        if isinstance(happened, Paused) and len(answer.sentences) == 1 and answer.progress.verified == 0:
            answer.progress.verified = 1
            yield Verify((0,), wait=False)
        elif not isinstance(happened, Paused):
            told.append(happened)
    answer.reject(0, told[0].state)
    yield Rewind(0, "my reason")
    yield Write()


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    own = {"each": each_sentence, "faulty": faulty, "at-once": at_once, "nonsense": nonsense, "later": without_waiting}
    registry.POLICIES._registered |= {**own, "function": each_sentence.write}
    closed.clear()
    yield
    for name in [*own, "function"]:
        del registry.POLICIES._registered[name]


def config(name: str) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping({"policy": name, "memory": memory})


def test_a_policy_of_a_plugin_runs_once_for_every_answer() -> None:
    notebook = Notebook()
    bench = Bench(config("each"), notebook, None, words(TEXT))
    bench.add("a", "q:", SamplingParams(max_tokens=40, n=2))
    bench.add("b", "r:", SamplingParams(max_tokens=40))
    results = bench.run()
    assert {generation.text for generation in results.values()} == {TEXT}
    assert sorted(notebook.queries) == ["Aa bb."] * 3 + ["Cc dd."] * 3
    assert sorted(closed) == ["q:", "q:", "r:"]
    kinds = [event.kind for event in results["b", 0].trace if event.kind in ("pause", "retrieving", "retrieval")]
    assert kinds == ["pause", "retrieving", "retrieval"] * 2


def test_a_fault_ends_its_request_alone_and_names_the_policy() -> None:
    bench = GatedBench(config("faulty"), Library(), None, words(TEXT))
    reader = Reader(rewrites=False)
    bench.add("bad", "bad:", SamplingParams(max_tokens=40, n=2), listener=None)
    bench.add("good", "good:", SamplingParams(max_tokens=40), listener=reader)
    results = bench.run_prompt()
    for index in range(2):
        failed = results["bad", index]
        assert failed.finish_reason == "error"
        assert failed.error == "policy faulty failed: KeyError: 'no such thing'"
        assert failed.text.startswith("Aa bb. Cc dd.")
    assert results["good", 0].text == TEXT
    assert results["good", 0].finish_reason == "stop"


@pytest.mark.parametrize(("prompt", "failed"), [("first:", {0, 1, 2}), ("others:", {1, 2})])
def test_a_fault_at_the_beginning(prompt: str, failed: set[int]) -> None:
    bench = GatedBench(config("at-once"), Library(), None, words(TEXT))
    bench.add("a", prompt, SamplingParams(max_tokens=40, n=3))
    results = bench.run_prompt()
    assert {index for (_, index), generation in results.items() if generation.finish_reason == "error"} == failed
    assert {g.error for g in results.values() if g.error} == {"policy at-once failed: ValueError: not today"}


def test_what_is_no_effect_is_named() -> None:
    bench = Bench(config("nonsense"), Library(), None, words(TEXT))
    bench.add("a", "q:", SamplingParams(max_tokens=40))
    error = bench.run()["a", 0].error
    assert error == "policy nonsense failed: TypeError: it yielded 'write', which asks for nothing"


def test_a_request_that_is_aborted_closes_its_policy() -> None:
    bench = Bench(config("each"), Library(), None, words(TEXT))
    bench.add("a", "q:", SamplingParams(max_tokens=40))
    for _ in range(3):
        bench.core.step()
    assert closed == []
    bench.core.active.abort("a")
    assert closed == ["q:"]


def test_a_verdict_that_nobody_waits_for_comes_as_the_result_of_a_later_yield() -> None:
    bench = GatedBench(config("later"), None, Judge(lambda _: Verdict.REFUTED), words(TEXT))
    sequence = bench.add("a", "q:", SamplingParams(max_tokens=40))
    while len(sequence.output_text) < 15:
        bench.step()
    bench.verification.release()
    generation = bench.run_prompt()["a", 0]
    [rewind] = [event for event in generation.trace if event.kind == "rewind"]
    assert rewind.data["reason"] == "my reason"
    assert rewind.data["discarded_tokens"] >= 15
    assert generation.text == TEXT
    assert generation.sentences[0].removed == ("Aa bb.",)


def test_the_policies_of_the_guide_run() -> None:
    code = "\n".join(block.split("```")[0] for block in GUIDE.read_text(encoding="utf-8").split("```python\n")[2:])
    made: dict[str, Any] = {}
    exec(code, made)
    for name, kind in (("every_sentence", "retrieval"), ("twice", "answered")):
        registry.POLICIES._registered["guide"] = made[name]
        try:
            bench = Bench(config("guide"), Library(), None, words(TEXT))
            bench.add("a", "q:", SamplingParams(max_tokens=40))
            generation = bench.run()["a", 0]
        finally:
            del registry.POLICIES._registered["guide"]
        assert generation.finish_reason in ("stop", "length"), generation.error
        assert kind in {event.kind for event in generation.trace}


def test_a_bare_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="policy 'function' must be a generator function under"):
        Bench(config("function"), Library(), None, words(TEXT))
