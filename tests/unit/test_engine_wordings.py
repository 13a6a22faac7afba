"""Rewrites that draw several wordings of a sentence in one batch and go on with the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from engine_bench import LATENCIES, GatedBench, Latencies, Reader
from engine_parts import Answers, Judge, Library, number, sentences, words
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from mock_engine import Bench

from ewe.config import Config
from ewe.types import Generation, Verdict, VerificationRequest, VerificationResult
from ewe.types.sampling_params import SamplingParams

NO, YES, MAYBE = Verdict.REFUTED, Verdict.SUPPORTED, Verdict.INCONCLUSIVE


def config(count: int = 4, **feedback: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 2, "verification_units": 4}
    values = {"verify_every": 1, "max_attempts": 2, "wordings": count, **feedback}
    return Config.from_mapping({"memory": memory, "feedback": values, "cache": {"block_size": 4}})


class Batches(Judge):
    """Notes what it is asked at once."""

    def __init__(self, verdict: Any = None) -> None:
        super().__init__(verdict)
        self.batches: list[list[str]] = []

    def verify(self, requests: Sequence[VerificationRequest]) -> list[VerificationResult]:
        self.batches.append([request.sentence for request in requests])
        return super().verify(requests)


def told(generation: Generation) -> list[dict[str, Any]]:
    return [dict(event.data) for event in generation.trace if event.kind == "wordings"]


def write(verifier: Any, count: int = 4, seed: int = 3, others: int = 0, **feedback: Any) -> Generation:
    """One answer of sentences that a hot draw varies, beside others; the stream keeps its promises."""
    bench, reader = GatedBench(config(count, **feedback), None, verifier, sentences), Reader()
    bench.runner.strength = 6.0
    params = SamplingParams(max_tokens=100, temperature=0.8, seed=seed)
    bench.add("a", "Tell me of a bad idea:", params, listener=reader)
    for name in range(others):
        bench.add(f"b{name}", "of a" + "b" * name, SamplingParams(max_tokens=40, temperature=0.8, seed=name))
    generation = bench.run_with(Latencies())["a", 0]
    assert reader.text == generation.text
    assert generation.stats.tokens_kept == len(generation.token_ids) == len(generation.logprobs)
    return generation


def by_hash(sentence: str) -> Verdict:
    return [NO, NO, NO, YES, MAYBE][number("wordings", sentence) % 5]


def test_wordings_are_drawn_over_one_context_and_judged_at_once() -> None:
    verifier = Batches(by_hash)
    generation = write(verifier)
    drawings = told(generation)
    assert drawings
    for drawing in drawings:
        texts = [wording["text"] for wording in drawing["wordings"]]
        assert len(texts) == 4
        assert len(set(texts)) > 1
        assert [text for text in texts if text] in verifier.batches
        assert [wording["verdict"] for wording in drawing["wordings"]] == [
            by_hash(text).value if text else "not_checked" for text in texts
        ]


def test_the_best_is_kept() -> None:
    generations = [write(Batches(by_hash), seed=seed) for seed in range(4)]
    drawings = [drawing for generation in generations for drawing in told(generation)]
    assert any(drawing["chosen"] for drawing in drawings)
    order = ["refuted", "inconclusive", "supported"]
    for drawing in drawings:
        found = [order.index(w["verdict"]) for w in drawing["wordings"] if w["verdict"] in order]
        chosen = drawing["wordings"][drawing["chosen"]]["verdict"]
        assert chosen == "not_checked" or order.index(chosen) == max(found)
    refuted = sum(s.verdict is NO for g in generations for s in g.sentences)
    alone = [write(Batches(by_hash), 1, seed) for seed in range(4)]
    assert refuted < sum(s.verdict is NO for g in alone for s in g.sentences)


@pytest.mark.parametrize("others", [1, 3])
def test_other_rows_change_nothing(others: int) -> None:
    alone, beside = write(Batches(by_hash)), write(Batches(by_hash), others=others)
    assert alone.text == beside.text
    assert told(alone) == told(beside)


def test_the_first_wording_is_what_a_single_one_would_have_been() -> None:
    first = told(write(Batches(by_hash)))[0]["wordings"][0]["text"]
    single = write(Batches(by_hash), 1)
    start = next(event.data["start"] for event in single.trace if event.kind == "rewind")
    checks = [event.data for event in single.trace if event.kind == "verification"]
    assert [check["text"] for check in checks if check["start"] == start][1] == first


def test_if_none_is_good_enough_on_exhausted_decides() -> None:
    verifier = Answers({"Aa.": [NO]})
    bench = Bench(config(on_exhausted="drop"), None, verifier, words("Good. Aa. Bb."))
    bench.add("a", "q:", SamplingParams(max_tokens=60))
    generation = bench.run()["a", 0]
    assert generation.text.rstrip() == "Good."
    assert [event.data["reason"] for event in generation.trace if event.kind == "rewind"] == [
        *("refuted", "drop", "refuted", "drop")
    ]
    assert len(told(generation)) == 2


def test_the_end_of_the_answer_may_be_a_wording() -> None:
    bench = Bench(config(2), None, Answers({"Aa.": [NO]}), words("Good. Aa. Bb.", "Good."))
    bench.add("a", "q:", SamplingParams(max_tokens=60))
    generation = bench.run()["a", 0]
    assert (generation.text.rstrip(), generation.finish_reason) == ("Good.", "stop")
    assert told(generation)[0]["wordings"][0]["text"] == ""


@pytest.mark.parametrize("kind", ["abort", "deadline", "nan", "pass"])
def test_whatever_ends_the_answer_gives_every_block_back(kind: str) -> None:
    bench = GatedBench(config(), None, Judge(lambda sentence: NO), sentences)
    bench.runner.strength = 6.0
    sequence = bench.add("a", "Tell me of it", SamplingParams(max_tokens=60, temperature=0.8, seed=3))
    bench.add("b", "of a", SamplingParams(max_tokens=30, temperature=0.8, seed=3))
    while sequence.policy.drawing is None or not sequence.policy.drawing.sides:
        bench.release_due(Latencies())
        assert bench.step()
    bench.step()
    if kind == "abort":
        bench.core.active.abort("a")
    elif kind == "deadline":
        bench.core.active.end(sequence, "timeout")
    elif kind == "nan":
        bench.runner.nan_if = lambda context: "ell me" in context
    else:
        bench.runner.fail_next = RuntimeError("broken")
    finished = bench.run_with(Latencies())
    reasons = {"abort": "abort", "deadline": "timeout", "nan": "error", "pass": "error"}
    assert finished["a", 0].finish_reason == reasons[kind]
    assert ("b", 0) in finished
    assert not bench.core.active.sequences


@examples(5, 15)
@given(data=st.data())
def test_mixed_requests_under_pressure_keep_their_promises(data: st.DataObject) -> None:
    salt = data.draw(st.integers(0, 10**6))
    judge = Judge(lambda sentence: [NO, YES, MAYBE][number(salt, sentence) % 3])
    values = config(
        data.draw(st.sampled_from([2, 3, 5])),
        mode=data.draw(st.sampled_from(["blocking", "optimistic"])),
        on_exhausted=data.draw(st.sampled_from(["keep_best", "drop", "flag", "quote"])),
        rewrite_when=data.draw(st.sampled_from(["refuted", "unsupported"])),
        max_attempts=data.draw(st.integers(1, 3)),
    ).model_dump()
    scheduler = {"async_scheduling": data.draw(st.booleans()), "max_num_seqs": data.draw(st.sampled_from([1, 2, 16]))}
    num_blocks = data.draw(st.sampled_from([90, 110, 400]))
    bench = GatedBench(Config.from_mapping(values | {"scheduler": scheduler}), Library(), judge, sentences, num_blocks)
    bench.runner.strength = 6.0
    stop = data.draw(st.sampled_from([(), ("abc", ". A"), ("j. Bc",)]))
    readers = {}
    for name in range(data.draw(st.integers(1, 3))):
        readers[str(name)] = Reader()
        params = SamplingParams(max_tokens=50, temperature=0.8, seed=salt + name, stop=stop)
        bench.add(str(name), f"Tell {'abc'[name]} me", params, listener=readers[str(name)])
    finished = bench.run_with(data.draw(LATENCIES))
    for name, reader in readers.items():
        generation = finished[name, 0]
        assert reader.text == generation.text
        assert len(generation.token_ids) == len(generation.logprobs) <= 50
        for sentence in generation.sentences:
            assert generation.text[sentence.start : sentence.end] == sentence.text
