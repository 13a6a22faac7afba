"""Blocking and optimistic verification: the same result whatever the latencies, and nothing is sent before its time."""

from __future__ import annotations

from typing import Any

import pytest
from engine_bench import LATENCIES, GatedBench, Latencies, Reader
from engine_parts import Judge, Library, sentences
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from ewe.config import Config
from ewe.types import Generation, Verdict
from ewe.types.sampling_params import SamplingParams

AT_ONCE = Latencies()
AHEAD = {"scheduler": {"async_scheduling": True}}


def config(mode: str, feedback: dict[str, Any] | None = None, **groups: Any) -> Config:
    memory = {"unit_tokens": 24, "retrieval_units": 3, "verification_units": 2}
    values = {"memory": memory, "cache": {"block_size": 4}, "feedback": {"mode": mode, **(feedback or {})}}
    return Config.from_mapping({**values, **groups})


def essence(generation: Generation) -> Any:
    """All that must not depend on mode and latency."""
    parts = [(s.text, s.start, s.verdict, s.claims, s.attempts, s.removed, s.reason) for s in generation.sentences]
    counts = (generation.stats.rewrites, generation.stats.tokens_kept, generation.finish_reason)
    return generation.text, generation.token_ids, generation.logprobs, parts, counts


def run(
    settings_: Config,
    prompts: list[str],
    params: SamplingParams,
    latencies: Latencies = AT_ONCE,
    checks: bool = True,
) -> dict[Any, Any]:
    """The essence of the results by request."""
    bench = GatedBench(settings_, Library(), Judge() if checks else None, sentences)
    bench.runner.strength = 6.0
    readers = {f"r{i}": Reader(rewrites=checks) for i in range(len(prompts))}
    for name, prompt in zip(readers, prompts, strict=True):
        bench.add(name, prompt, params, listener=readers[name])
    results = bench.run_with(latencies)
    for (name, _), generation in results.items():
        assert readers[name].text == generation.text
        assert readers[name].kinds()[-1] == "finish"
        if checks and settings_.feedback.verify_when == "interval":
            assert all(sentence.verdict is not Verdict.NOT_CHECKED for sentence in generation.sentences)
    return {key: essence(generation) for key, generation in results.items()}


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@examples(2, 5)
@given(data=st.data())
def test_both_modes_give_the_same_under_any_latency(temperature: float, data: st.DataObject) -> None:
    feedback = {
        "retrieve_every": data.draw(st.sampled_from([1, 3, 10, 25, 40])),
        "verify_every": data.draw(st.sampled_from([1, 4, 9, 20])),
        "max_attempts": data.draw(st.integers(1, 3)),
        "on_exhausted": data.draw(st.sampled_from(["keep_best", "flag", "drop"])),
    }
    prompts = data.draw(st.lists(st.sampled_from(["Tell me", "of a", "who is it"]), min_size=1, max_size=3))
    params = SamplingParams(max_tokens=data.draw(st.integers(20, 70)), temperature=temperature, seed=5)
    expected = run(config("blocking", feedback), prompts, params)
    for mode in ("blocking", "optimistic"):
        for ahead in ({}, AHEAD):
            assert run(config(mode, feedback, **ahead), prompts, params, data.draw(LATENCIES, label=mode)) == expected
    assert run(config("optimistic", feedback), prompts, params) == expected


@examples(3, 10)
@given(latencies=LATENCIES, trigger=st.sampled_from(["entropy", "min_prob"]), ahead=st.sampled_from([{}, AHEAD]))
def test_the_same_with_triggers(latencies: Latencies, trigger: str, ahead: dict[str, Any]) -> None:
    feedback = {"retrieve_when": trigger, "verify_when": trigger, "verify_entropy": 2.2, "verify_min_prob": 0.7}
    params = SamplingParams(max_tokens=60, temperature=0.8, seed=1)
    expected = run(config("blocking", feedback), ["Tell me"], params)
    assert run(config("optimistic", feedback, **ahead), ["Tell me"], params, latencies) == expected


@examples(3, 10)
@given(
    latencies=LATENCIES,
    stop=st.sampled_from([("d",), (". D", "c."), ("a b", ". Ab"), ("ihg. F",)]),
    ahead=st.sampled_from([{}, AHEAD]),
)
def test_the_same_with_stop_strings(latencies: Latencies, stop: tuple[str, ...], ahead: dict[str, Any]) -> None:
    params = SamplingParams(max_tokens=80, stop=stop, min_tokens=12)
    feedback = {"verify_every": 3}
    expected = run(config("blocking", feedback), ["Tell me", "of a"], params)
    assert run(config("optimistic", feedback, **ahead), ["Tell me", "of a"], params, latencies) == expected


@examples(3, 10)
@given(latencies=LATENCIES)
def test_answers_of_retrieval_come_in_any_order_without_a_verifier(latencies: Latencies) -> None:
    params = SamplingParams(max_tokens=50)
    expected = run(config("blocking"), ["Tell me", "of a"], params, checks=False)
    assert run(config("optimistic"), ["Tell me", "of a"], params, latencies, checks=False) == expected


def test_several_answers_to_one_prompt_are_the_same_in_both_modes() -> None:
    params = SamplingParams(max_tokens=60, n=3, temperature=0.8, seed=2)
    results = []
    late = Latencies((1, 3), (20, 0, 7))
    for mode, latencies, ahead in (("blocking", AT_ONCE, {}), ("optimistic", late, {}), ("optimistic", late, AHEAD)):
        bench = GatedBench(config(mode, **ahead), Library(), Judge(), sentences)
        bench.runner.strength = 6.0
        bench.add("a", "Tell me", params)
        found = bench.run_with(latencies)
        results.append({key: essence(generation) for key, generation in found.items()})
    assert results[0] == results[1] == results[2]
    assert len({result[0] for result in results[0].values()}) == 3


def test_decoding_goes_on_while_a_check_is_open_only_in_optimistic_mode() -> None:
    written = {}
    for mode in ("blocking", "optimistic"):
        bench = GatedBench(config(mode), None, Judge(), sentences)
        reader = Reader()
        sequence = bench.add("a", "Tell me", SamplingParams(max_tokens=100), listener=reader)
        for _ in range(60):
            bench.step()
        assert bench.open_jobs()
        assert reader.text == ""  # no verdict is in
        written[mode] = len(sequence.output_text)
    assert written["blocking"] < 60 == written["optimistic"]


def test_a_late_refutation_takes_back_everything_since_and_nothing_before() -> None:
    """Three sentences are written while the first is being checked; it is refuted."""
    params = SamplingParams(max_tokens=60)
    expected = run(config("blocking", {"verify_every": 1}), ["a"], params)
    late = run(config("optimistic", {"verify_every": 1}), ["a"], params, Latencies((0,), (70,)))
    assert late == expected
    [(_, _, _, parts, (rewrites, _, _))] = expected.values()
    assert rewrites
    assert parts[0][5]


def test_a_late_refutation_does_not_wait_for_passages_that_it_makes_pointless() -> None:
    judge = Judge(lambda _: Verdict.REFUTED)
    bench = GatedBench(config("optimistic", {"verify_every": 1}), Library(), judge, sentences)
    reader = Reader()
    sequence = bench.add("a", "Tell me", SamplingParams(max_tokens=100), listener=reader)
    while not (sequence.policy.retrieval and sequence.policy.checks and sequence.policy.checks[0].snapshot):
        for _ in bench.retrieval.jobs[:]:
            bench.retrieval.release()
        bench.step()
    bench.verification.release()
    before = len(reader.events)
    bench.step()
    assert "rewind" in reader.kinds()[before:]
    assert bench.retrieval.jobs  # nobody waits for its answer any more
    assert sequence.policy.retrieval is None
    bench.run_prompt()


def test_a_rewind_asks_again_with_the_sentences_that_the_discarded_query_had_covered() -> None:
    """Passages are sought every 40 tokens with all sentences since; a verdict on the second one comes after that."""
    feedback = {"retrieve_every": 40, "verify_every": 1, "max_attempts": 2, "on_exhausted": "flag"}
    params = SamplingParams(max_tokens=120)
    expected = run(config("blocking", feedback), ["a", "b", "c"], params)
    assert run(config("optimistic", feedback), ["a", "b", "c"], params, Latencies((0,), (35, 60))) == expected
