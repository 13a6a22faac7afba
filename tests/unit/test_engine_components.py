"""Whatever retriever and verifier do (raise, hang, return nonsense), the text goes on and says what is missing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from engine_bench import Reader
from engine_parts import Judge, Library, sentences
from mock_engine import Bench

from ewe.components import Components
from ewe.config import Config
from ewe.types import Claim, Evidence, Passage, ScoredPassage, Verdict, VerificationResult
from ewe.types.sampling_params import SamplingParams

LONG = 60.0  # seconds after which a test would fail that waits for something that never comes


def config(**feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping({"memory": memory, "feedback": feedback, "cache": {"block_size": 4}})


class Broken:
    """A retriever and verifier that does the same wrong thing every time."""

    def __init__(self, action: Callable[[Sequence[Any]], Any]) -> None:
        self._action = action

    def retrieve(self, queries: Sequence[str], top_k: int) -> Any:
        return self._action(queries)

    def verify(self, requests: Sequence[Any]) -> Any:
        return self._action(requests)


def fail(items: Sequence[Any]) -> Any:
    raise ConnectionError("no network")


NONSENSE_RESULTS: dict[str, Any] = {
    "raises": fail,
    "returns None": lambda items: None,
    "too few": lambda items: [],
    "too many": lambda items: [VerificationResult()] * (len(items) + 1),
    "strings": lambda items: ["supported"] * len(items),
    "claims are no claims": lambda items: [VerificationResult(("yes",))] * len(items),  # type: ignore[arg-type]
    "no list of claims": lambda items: [VerificationResult(None)] * len(items),  # type: ignore[arg-type]
    "a verdict is a string": lambda items: [VerificationResult((Claim("x", verdict="refuted"),))] * len(items),  # type: ignore[arg-type]
    "evidence is text": lambda items: [VerificationResult((Claim("x"),), ("see page 5",))] * len(items),  # type: ignore[arg-type]
    "evidence without passage": lambda items: (
        [VerificationResult((Claim("x"),), (Evidence("p", Verdict.REFUTED, 1.0),))] * len(items)  # type: ignore[arg-type]
    ),
}


class Empty(list[Passage]):
    """A retriever that holds nothing yet, and so counts as false."""

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        return [[] for _ in queries]


def test_a_retriever_that_is_empty_yet_is_one() -> None:
    assert Components(Empty(), None).can_retrieve
    assert Components(Empty(), None).has_any
    assert not Components(None, None).has_any


@pytest.mark.parametrize("action", NONSENSE_RESULTS.values(), ids=NONSENSE_RESULTS.keys())
def test_a_bad_verifier_costs_the_verdicts_and_nothing_else(action: Any) -> None:
    good = Bench(config(), None, None, sentences)
    good.add("a", "Tell me", SamplingParams(max_tokens=40))
    bench = Bench(config(), None, Broken(action), sentences)
    reader = Reader()
    bench.add("a", "Tell me", SamplingParams(max_tokens=40), listener=reader)

    generation = bench.run()["a", 0]

    # The context starts at another position when there is a memory, so the mock model writes something else.
    assert generation.finish_reason == "length"
    assert len(generation.token_ids) == 40 == len(good.run()["a", 0].token_ids)
    assert len(generation.sentences) > 2
    assert {sentence.verdict for sentence in generation.sentences} == {Verdict.NOT_CHECKED}
    assert all(sentence.reason.startswith("verification failed: ") for sentence in generation.sentences)
    assert reader.text == generation.text
    assert any("error" in event.data for event in generation.trace if event.kind == "verification")


NONSENSE_HITS: dict[str, Any] = {
    "raises": fail,
    "returns None": lambda items: None,
    "too few": lambda items: [],
    "None per query": lambda items: [None] * len(items),
    "passages without scores": lambda items: [[Passage("p", "text")]] * len(items),
    "a score is text": lambda items: [[ScoredPassage(Passage("p", "text"), "high")]] * len(items),  # type: ignore[arg-type]
    "no passage": lambda items: [[ScoredPassage("text", 1.0)]] * len(items),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("action", NONSENSE_HITS.values(), ids=NONSENSE_HITS.keys())
def test_a_bad_retriever_costs_the_passages_and_nothing_else(action: Any) -> None:
    bench = Bench(config(), Broken(action), Judge(lambda _: Verdict.SUPPORTED), sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=40))
    generation = bench.run()["a", 0]
    assert generation.finish_reason == "length"
    assert generation.stats.refreshes == 0
    assert {sentence.verdict for sentence in generation.sentences} == {Verdict.SUPPORTED}
    errors = [event.data.get("error", "") for event in generation.trace if event.kind == "retrieval"]
    assert errors
    assert all(error.startswith("retrieval failed: ") for error in errors)


def test_passages_that_no_unit_can_hold_are_skipped_with_a_note() -> None:
    hits = [Passage("empty", ""), Passage("worthless", "not believed", veracity=0.0), Passage("fine", "a fact")]
    action = lambda items: [[ScoredPassage(p, 1.0) for p in hits]] * len(items)  # noqa: E731
    bench = Bench(config(), Broken(action), None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=5))
    generation = bench.run()["a", 0]
    skipped = {event.data["id"]: event.data["reason"] for event in generation.trace if event.kind == "skip"}
    assert skipped.keys() == {"empty", "worthless"}
    assert "no text" in skipped["empty"]
    assert "veracity is 0" in skipped["worthless"]
    assert generation.sources.keys() == {"fine"}
    assert generation.finish_reason == "length"


class Hanging(Library, Judge):
    """Answers nothing until the gate opens."""

    def __init__(self) -> None:
        Judge.__init__(self, lambda _: Verdict.SUPPORTED)
        self.gate = threading.Event()
        self.calls = 0

    def retrieve(self, queries: Sequence[str], top_k: int) -> Any:
        self.calls += 1
        assert self.gate.wait(LONG)
        return Library.retrieve(self, queries, top_k)

    def verify(self, requests: Sequence[Any]) -> Any:
        self.calls += 1
        assert self.gate.wait(LONG)
        return Judge.verify(self, requests)


@pytest.mark.parametrize("mode", ["blocking", "optimistic"])
def test_a_hanging_verifier_times_out_and_serves_again_later(mode: str) -> None:
    component = Hanging()
    bench = Bench(config(timeout=0.02, mode=mode), None, component, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=30))
    generation = bench.run()["a", 0]
    assert generation.finish_reason == "length"
    reasons = {sentence.reason for sentence in generation.sentences}
    assert reasons == {"verification did not answer within 0.02 s"}

    component.gate.set()
    bench.core.policies.effect_runner.config = config(timeout=LONG).feedback
    bench.add("b", "Tell me", SamplingParams(max_tokens=30))
    assert {s.verdict for s in bench.run()["b", 0].sentences} == {Verdict.SUPPORTED}


def test_a_hanging_retriever_times_out() -> None:
    component = Hanging()
    bench = Bench(config(timeout=0.02, retrieve_every=16), component, None, sentences)
    bench.add("a", "Tell me", SamplingParams(max_tokens=30))
    generation = bench.run()["a", 0]
    assert generation.finish_reason == "length"
    assert generation.stats.refreshes == 0
    assert component.calls >= 1
    component.gate.set()
