"""SamplingParams of the wrong types: refused by name, before an engine's loop stops at them."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from ewe.errors import InvalidRequestError
from ewe.types.sampling_params import MemoryOptions, SamplingParams


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"stop": [5]}, "stop must hold texts"),
        ({"stop": 5}, "stop must be a text or a list"),
        ({"stop_token_ids": 5}, "stop_token_ids must be a list"),
        ({"max_tokens": "10"}, "max_tokens must be a whole number, got '10'"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"seed": "a"}, "seed must be a whole number"),
        ({"top_k": 2.5}, "top_k must be a whole number"),
        ({"logprobs": True}, "logprobs must be a whole number, got True"),
        ({"temperature": "0.5"}, "temperature must be a number"),
        ({"ignore_eos": "false"}, "ignore_eos must be True or False"),
        ({"logit_bias": [1]}, "logit_bias must be a mapping"),
        ({"logit_bias": {1: "2"}}, "logit_bias must hold finite numbers"),
        ({"json_schema": '{"type": "object"}'}, "json_schema must be a mapping.* got str"),
        ({"grammar": 5}, "grammar must be a text"),
    ],
)
def test_values_of_another_type_are_refused_by_name(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        SamplingParams(**bad)


def test_a_threshold_is_a_number() -> None:
    with pytest.raises(InvalidRequestError, match="threshold must be a number"):
        MemoryOptions("ann", threshold="0.5")  # type: ignore[arg-type]


def test_numbers_of_other_libraries_are_numbers() -> None:
    params = SamplingParams(seed=numpy.int64(3), temperature=numpy.float32(0.5))
    assert type(params.seed) is int
    assert params == SamplingParams(seed=3, temperature=0.5)
