"""A sentence that the token limit ends is neither checked nor written again."""

from __future__ import annotations

from typing import Any

from engine_parts import Answers, words
from mock_engine import Bench

from ewe.config import Config
from ewe.types import Generation, Verdict
from ewe.types.sampling_params import SamplingParams


def write(script: Any, max_tokens: int, verdicts: dict[str, list[Verdict]]) -> Generation:
    values = {"memory": {"unit_tokens": 24}, "feedback": {"verify_every": 1}, "cache": {"block_size": 4}}
    bench = Bench(Config.from_mapping(values), None, Answers(verdicts), script)
    bench.add("a", "q:", SamplingParams(max_tokens=max_tokens))
    generation: Generation = bench.run()["a", 0]
    return generation


def test_what_max_tokens_cuts_off_is_not_checked() -> None:
    generation = write(words("Aa. Bbbbbbbb."), len("Aa. Bbbb"), {"Bbbb": [Verdict.REFUTED]})
    last = generation.sentences[-1]
    assert (generation.finish_reason, generation.text) == ("length", "Aa. Bbbb")
    assert (last.verdict, last.reason, last.removed) == (Verdict.NOT_CHECKED, "cut off", ())
    assert generation.sentences[0].verdict is not Verdict.NOT_CHECKED


def test_a_whole_sentence_at_the_limit_is_checked() -> None:
    generation = write(words("Aa. Bb. Cc."), len("Aa. Bb."), {})
    assert (generation.finish_reason, generation.text) == ("length", "Aa. Bb.")
    assert generation.sentences[-1].reason == ""
