"""What enters the memory: feedback, hits and documents, first in, first out, weighted by veracity, no copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from engine_parts import Answers, words
from mock_engine import Bench

from ewe.config import Config
from ewe.types import Generation, Passage, ScoredPassage, Verdict
from ewe.types.sampling_params import SamplingParams

NO = Verdict.REFUTED


def config(**feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 4}
    values = {"verify_every": 1, "max_attempts": 3, **feedback}
    return Config.from_mapping({"memory": memory, "feedback": values, "cache": {"block_size": 4}})


def write(settings: Config, script: Any, verifier: Any) -> Generation:
    bench = Bench(settings, None, verifier, script)
    bench.add("a", "q:", SamplingParams(max_tokens=60))
    return bench.run()["a", 0]


def refreshes(generation: Generation) -> list[tuple[str, str]]:
    return [(e.data["lane"], e.data["passage"]["id"]) for e in generation.trace if e.kind == "refresh"]


def test_feedback_fills_the_verification_lane_first_in_first_out() -> None:
    texts = [f"A{letter}." for letter in "abcdefgh"]
    verdicts = {text: [NO] for text in texts[:6]}
    generation = write(config(max_attempts=9), words(*texts[:5], "Af.", "Ag."), Answers(verdicts))
    # Four places: the fifth piece of feedback evicts the first. The script stays at four units from there on.
    assert refreshes(generation)[:4] == [("verification", f"about {text}") for text in texts[:4]]
    evictions = [event.data["unit_id"] for event in generation.trace if event.kind == "evict"]
    assert evictions == [0][: len(evictions)]


def test_what_is_in_memory_is_not_added_again() -> None:
    passage = Passage("p", "against both")
    generation = write(
        config(max_attempts=2), words("Aa. Bb.", "Ab. Bc."), Answers({"Aa.": [NO], "Bc.": [NO]}, evidence=passage)
    )
    assert refreshes(generation) == [("verification", "p")]
    assert generation.stats.refreshes == 1


@pytest.mark.parametrize(("mode", "expected"), [("off", [1.0, 1.0]), ("linear", [0.5, 1.0]), ("power", [0.5**3, 1.0])])
def test_veracity_becomes_weight_and_reaches_the_model(mode: str, expected: list[float]) -> None:
    memory = {"unit_tokens": 24, "retrieval_units": 3, "veracity_weighting": mode, "veracity_power": 3.0}
    bench = Bench(Config.from_mapping({"memory": memory}), None, None, words("Aa."))
    documents = [Passage("a", "half true", veracity=0.5), Passage("b", "false", veracity=0.0), Passage("c", "true")]
    bench.add("a", "q:", SamplingParams(max_tokens=3), documents=documents)
    generation = bench.run()["a", 0]
    rows = [row for rows in bench.runner.rows_run for row in rows if row.wants_logits]
    assert [list(row.unit_weights) for row in rows] == [expected] * len(rows)
    assert generation.sources.keys() == {"a", "c"}
    assert [e.data["weight"] for e in generation.trace if e.kind == "refresh"] == expected


def test_refuting_evidence_of_veracity_0_stays_out() -> None:
    lie = Passage("lie", "not so", veracity=0.0)
    generation = write(config(max_attempts=2, on_exhausted="flag"), words("Aa."), Answers({"Aa.": [NO]}, lie))
    assert refreshes(generation) == []
    assert [event.data["id"] for event in generation.trace if event.kind == "skip"] == ["lie"]
    assert "lie" in generation.sources  # it decided a verdict


class Shelf:
    """A retriever that always finds the same passages, with scores 3, 2, 1."""

    def __init__(self, *texts: str) -> None:
        self._hits = [ScoredPassage(Passage(t, t), float(3 - i)) for i, t in enumerate(texts)]

    def retrieve(self, queries: Sequence[str], top_k: int) -> list[list[ScoredPassage]]:
        return [self._hits for _ in queries]


def test_of_many_hits_the_best_enter_and_the_best_is_the_newest() -> None:
    bench = Bench(config(retrieval_threshold=0.5), Shelf("one", "two", "three"), None, words("Aa."))
    bench.add("a", "q:", SamplingParams(max_tokens=3))
    assert refreshes(bench.run()["a", 0]) == [("retrieval", "two"), ("retrieval", "one")]


def test_hits_at_or_under_the_threshold_stay_out() -> None:
    bench = Bench(config(retrieval_threshold=2.0), Shelf("one", "two", "three"), None, words("Aa."))
    bench.add("a", "q:", SamplingParams(max_tokens=3))
    assert refreshes(bench.run()["a", 0]) == [("retrieval", "one")]


def test_copies_and_lies_among_the_hits_take_no_place() -> None:
    shelf = Shelf("one", "one", "two")
    shelf._hits.insert(0, ScoredPassage(Passage("lie", "lie", veracity=0.0), 9.0))
    bench = Bench(config(), shelf, None, words("Aa."))
    bench.add("a", "q:", SamplingParams(max_tokens=3))
    assert refreshes(bench.run()["a", 0]) == [("retrieval", "two"), ("retrieval", "one")]
