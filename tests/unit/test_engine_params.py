"""SamplingParams through the whole engine: lengths, ends, stop strings, streams, seeds and probabilities."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
import torch
from engine_bench import Reader
from engine_parts import number, sentences, words
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_engine import ALPHABET, EOS, Bench

from ewe.config import Config
from ewe.errors import InvalidRequestError
from ewe.types import Generation
from ewe.types.sampling_params import SamplingParams

CONFIG = Config.from_mapping({"cache": {"block_size": 4}})


def write(script: Any, params: SamplingParams, prompt: str = "q:", strength: float = 20.0) -> Generation:
    """One answer; the stream is checked on the way."""
    bench = Bench(CONFIG, None, None, script)
    bench.runner.strength = strength
    reader = Reader(rewrites=False)
    bench.add("a", prompt, params, listener=reader)
    generation = bench.run()["a", 0]
    assert reader.text == generation.text
    return generation


def ids(text: str) -> tuple[int, ...]:
    return tuple(ALPHABET.index(char) for char in text)


# --- the end of the text


def test_the_end_token_ends_the_text_and_stands_among_the_ids() -> None:
    generation = write(words("Aa."), SamplingParams(max_tokens=10))
    assert (generation.text, generation.finish_reason) == ("Aa.", "stop")
    assert generation.token_ids == (*ids("Aa."), EOS)
    assert len(generation.logprobs) == 4


def test_max_tokens_ends_the_text() -> None:
    generation = write(words("Aa. Bb."), SamplingParams(max_tokens=4))
    assert (generation.text, generation.finish_reason) == ("Aa. ", "length")


def test_ignore_eos_goes_on() -> None:
    generation = write(words("Aa."), SamplingParams(max_tokens=8, ignore_eos=True))
    assert generation.finish_reason == "length"
    assert generation.token_ids[3] == EOS
    assert len(generation.token_ids) == 8


def test_min_tokens_bans_the_end_and_the_stop_tokens_until_then() -> None:
    params = SamplingParams(max_tokens=12, min_tokens=6, stop_token_ids=ids("b"))
    generation = write(words("Aa."), params)
    assert generation.finish_reason in ("stop", "length")
    assert not {EOS, *ids("b")} & set(generation.token_ids[:6])
    assert len(generation.token_ids) > 6
    assert write(words("abc"), SamplingParams(max_tokens=12, min_tokens=1, stop_token_ids=ids("b"))).text == "ab"


def test_stop_token_ids_end_the_text_and_stay_in_it() -> None:
    generation = write(words("Abc. De"), SamplingParams(max_tokens=20, stop_token_ids=ids("c.")))
    assert (generation.text, generation.finish_reason) == ("Abc", "stop")


# --- stop strings


@pytest.mark.parametrize(
    ("stop", "text"),
    [("d", "abc"), ("cd", "ab"), (("xyz", "ef"), "abcd"), ("abcdefghij", "abcdefghi"), (("ghi", "efg"), "abcd")],
)
def test_stop_strings_end_the_text_before_them(stop: Any, text: str) -> None:
    generation = write(words("abcdefghi"), SamplingParams(max_tokens=20, stop=stop))
    assert generation.text == text
    assert generation.finish_reason == "stop"
    # The tokens of the stop string have been generated, and stay.
    assert generation.token_ids[: len(text)] == ids(text)


def test_min_tokens_puts_stop_strings_off() -> None:
    assert write(words("abcabcd"), SamplingParams(max_tokens=20, stop="bc", min_tokens=4)).text == "abca"
    assert write(words("abcabcd"), SamplingParams(max_tokens=20, stop="bc", min_tokens=3)).text == "a"


@settings(max_examples=25)
@given(stop=st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=3), salt=st.integers(0, 10**6))
def test_no_part_of_a_stop_string_is_ever_sent(stop: list[str], salt: int) -> None:
    script = lambda context, units: "ab."[number(context, salt) % 3]  # noqa: E731
    free = write(script, SamplingParams(max_tokens=30)).text
    first = min((place for place in map(free.find, stop) if place >= 0), default=len(free))
    # The engine stops at whichever is complete first; of two that are complete at once the earlier begin counts.
    ends = [free.find(item) + len(item) for item in stop if item in free]
    end = min(ends, default=len(free))
    expected = min((free.find(item) for item in stop if item in free[:end]), default=len(free))
    generation = write(script, SamplingParams(max_tokens=30, stop=tuple(stop)))  # the reader has checked the stream
    assert generation.text == free[:expected]
    assert expected >= first


# --- what is drawn


def test_penalties_and_biases_change_the_text() -> None:
    script = words("aaaaaaaaaa")
    assert write(script, SamplingParams(max_tokens=8)).text == "aaaaaaaa"
    logit_bias = {ALPHABET.index("a"): -50.0}
    assert "a" not in write(script, SamplingParams(max_tokens=8, logit_bias=logit_bias)).text
    frequent = write(script, SamplingParams(max_tokens=9, frequency_penalty=2.0), strength=9.0).text
    assert frequent.startswith("aa")
    assert frequent != "a" * 9
    present = write(script, SamplingParams(max_tokens=9, presence_penalty=2.0), strength=3.0).text
    assert present != write(script, SamplingParams(max_tokens=9), strength=3.0).text
    repeated = write(script, SamplingParams(max_tokens=9, repetition_penalty=99.0)).text
    assert repeated[0] == "a"
    assert repeated != "a" * 9
    # Repetition counts the prompt too: "a" stands in it.
    assert write(script, SamplingParams(max_tokens=1, repetition_penalty=99.0), prompt="a:").text != "a"


def test_log_probabilities_are_the_models_own() -> None:
    bench = Bench(CONFIG, None, None, sentences)
    bench.runner.strength = 3.0
    logits: list[torch.Tensor] = []
    run_logits = bench.runner._logits
    bench.runner._logits = lambda row: logits.append(run_logits(row)) or logits[-1]  # type: ignore[method-assign,func-returns-value]
    params = SamplingParams(max_tokens=12, temperature=0.6, top_k=5, presence_penalty=1.0, logprobs=4, ignore_eos=True)
    bench.add("a", "Tell me", params)
    generation = bench.run()["a", 0]

    expected = [torch.log_softmax(row.double(), dim=-1) for row in logits]
    chosen = [float(row[token]) for row, token in zip(expected, generation.token_ids, strict=True)]
    assert generation.logprobs == pytest.approx(chosen, abs=1e-5)
    assert len(generation.top_logprobs) == 12
    for row, top in zip(expected, generation.top_logprobs, strict=True):
        assert list(top) == row.topk(4).indices.tolist()
        assert list(top.values()) == pytest.approx(row.topk(4).values.tolist(), abs=1e-5)


@pytest.mark.parametrize("logprobs", [None, 0])
def test_top_log_probabilities_only_if_asked_for(logprobs: int | None) -> None:
    generation = write(words("Aa."), SamplingParams(max_tokens=9, logprobs=logprobs))
    assert generation.top_logprobs == ()
    assert len(generation.logprobs) == len(generation.token_ids)


# --- seeds and several answers


def many(requests: dict[str, SamplingParams]) -> dict[tuple[str, int], str]:
    bench = Bench(CONFIG, None, None, sentences)
    bench.runner.strength = 2.0
    for name, params in requests.items():
        bench.add(name, "Tell me", params)
    return {key: generation.text for key, generation in bench.run().items()}


def hot(seed: int | None, **options: Any) -> SamplingParams:
    return SamplingParams(max_tokens=15, temperature=1.0, seed=seed, ignore_eos=True, **options)


def test_the_same_seed_gives_the_same_text_whatever_else_runs() -> None:
    alone = many({"a": hot(5)})["a", 0]
    greedy = SamplingParams(max_tokens=30)
    crowd = many({"x": hot(6), "a": hot(5), "y": greedy, "z": hot(None), "b": hot(5)})
    assert crowd["a", 0] == crowd["b", 0] == alone
    assert len({alone, crowd["x", 0], crowd["z", 0]}) == 3


@pytest.mark.parametrize("temperature", [1e-6, 1e-40, 1e-320])
def test_a_temperature_of_nearly_nothing_is_greedy(temperature: float) -> None:
    found = many({"greedy": SamplingParams(max_tokens=9), "a": SamplingParams(max_tokens=9, temperature=temperature)})
    assert found["a", 0] == found["greedy", 0]


def test_without_a_seed_every_request_differs() -> None:
    found = many({"a": hot(None), "b": hot(None)})
    assert found["a", 0] != found["b", 0]


def test_a_trace_says_how_its_answer_can_be_written_again() -> None:
    first = write(None, SamplingParams(max_tokens=20, temperature=1.0, stop="zz", logit_bias={3: 1.0}))
    sampling = json.loads(json.dumps(first.trace[0].data["sampling"]))
    sampling["logit_bias"] = {int(token_id): bias for token_id, bias in sampling["logit_bias"].items()}
    assert write(None, SamplingParams(**sampling)).text == first.text


def test_several_answers_differ_and_are_reproducible() -> None:
    first, second = many({"a": hot(1, n=4)}), many({"b": hot(9), "a": hot(1, n=4)})
    assert len(set(first.values())) == 4
    assert {key: text for key, text in second.items() if key[0] == "a"} == first
    assert first["a", 0] == many({"a": hot(1)})["a", 0]  # the first of n is the one that n = 1 gives
    greedy = many({"a": SamplingParams(max_tokens=9, n=3)})
    assert len(set(greedy.values())) == 1


# --- what is refused


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"min_tokens": 9, "max_tokens": 8}, "min_tokens"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.1}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": 1.5}, "min_p"),
        ({"n": 0}, "n must"),
        ({"stop": ("a", "")}, "stop"),
        ({"presence_penalty": 2.1}, "presence_penalty"),
        ({"frequency_penalty": -2.1}, "frequency_penalty"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"logit_bias": {1: float("nan")}}, "logit_bias"),
        ({"logit_bias": {1: float("inf")}}, "logit_bias"),
        ({"logprobs": -1}, "logprobs"),
        ({"deadline_s": 0.0}, "deadline_s"),
    ],
)
def test_values_out_of_range_are_refused_by_name(bad: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidRequestError, match=name):
        SamplingParams(**bad)


def test_none_is_the_default_of_every_parameter() -> None:
    names = [item.name for item in dataclasses.fields(SamplingParams)]
    assert SamplingParams(**dict.fromkeys(names)) == SamplingParams()
