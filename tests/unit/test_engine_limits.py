"""What does not fit is refused by the name of the setting; what just fits is served to the end."""

from __future__ import annotations

from typing import Any

import pytest
from engine_parts import Library, sentences
from mock_engine import Bench

from ewe.config import Config
from ewe.errors import InvalidRequestError
from ewe.types.sampling_params import SamplingParams

UNIT_TOKENS, LENGTH = 12, 40
SMALLEST_POOL = 1 + 2 * 4 * 3 + 10  # null block, old and new units of 3 blocks, a context of LENGTH tokens


def config() -> Config:
    memory = {"unit_tokens": UNIT_TOKENS, "retrieval_units": 2, "verification_units": 2}
    return Config.from_mapping({"memory": memory, "cache": {"block_size": 4}})


@pytest.mark.parametrize(
    ("num_blocks", "prompt", "documents", "names"),
    [
        (SMALLEST_POOL, "p" * 40, [], ["40 tokens", "cache.num_blocks", "memory.unit_tokens"]),
        (10, "prompt", [], ["cache.num_blocks", "leaves room for 0"]),
        (2000, "p" * 300, [], ["300 tokens", "model.max_model_len 200", "memory.unit_tokens 12", "room for 187"]),
        (2000, "prompt", ["a", "b", "c"], ["documents: 3 ", "2 units", "memory.retrieval_units"]),
        (2000, "prompt", "one text", ["documents: this must be a list"]),
        (2000, "prompt", ["a", " "], ["documents: ", "document-2", "empty"]),
        (2000, "", [], ["prompt: this is empty"]),
        (2000, [], [], ["prompt: this is empty"]),
        (2000, [1, 99], [], ["prompt: 99", "[0, 52)"]),
        (2000, [1, "2"], [], ["'2'"]),
    ],
)
def test_what_cannot_fit_is_refused_by_name(num_blocks: int, prompt: Any, documents: Any, names: list[str]) -> None:
    bench = Bench(config(), Library(), None, sentences, num_blocks=num_blocks, max_model_len=200)
    with pytest.raises(InvalidRequestError) as caught:
        bench.add("a", prompt, SamplingParams(max_tokens=5), documents)
    for name in names:
        assert name in str(caught.value)
    bench.check()
    assert not bench.core.active.sequences


def test_the_text_ends_where_the_pool_or_the_model_does() -> None:
    bench = Bench(config(), Library(), None, sentences, num_blocks=SMALLEST_POOL, max_model_len=200)
    bench.add("a", "prompt", SamplingParams(max_tokens=500, ignore_eos=True))
    assert len(bench.run()["a", 0].token_ids) == LENGTH - 6
    bench = Bench(config(), None, None, sentences, max_model_len=50)
    bench.add("a", "prompt", SamplingParams(max_tokens=500, ignore_eos=True))
    bench.add("b", "prompt", SamplingParams(max_tokens=500, ignore_eos=True), ["one"])
    results = bench.run()
    assert len(results["a", 0].token_ids) == 50 - 6  # no memory, no positions kept free
    assert len(results["b", 0].token_ids) == 50 - UNIT_TOKENS - 6
    assert results["b", 0].finish_reason == "length"


@pytest.mark.parametrize(
    "params",
    [SamplingParams(logit_bias={99: 1.0}), SamplingParams(logit_bias={-1: 1.0}), SamplingParams(stop_token_ids=(52,))],
)
def test_ids_outside_the_vocabulary_are_refused(params: SamplingParams) -> None:
    with pytest.raises(InvalidRequestError, match="not a token id in"):
        Bench(config(), None, None, sentences).add("a", "prompt", params)
