"""Numbers of many streams at once are those that numpy draws one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ewe.engine.sampling.philox import first_uniforms
from ewe.engine.sampling.sampler import SamplingRow, uniform
from ewe.types.sampling_params import SamplingParams

NUMBERS = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_first_uniforms_are_those_of_numpys_generator(streams):
    keys = np.array([stream[:2] for stream in streams], np.uint64)
    counters = np.array([(0, 0, *stream[2:]) for stream in streams], np.uint64)
    expected = [
        np.random.Generator(np.random.Philox(key=key, counter=counter)).random()
        for key, counter in zip(keys, counters, strict=True)
    ]
    assert first_uniforms(keys, counters).tolist() == expected


@given(st.integers(-(2**70), 2**70), st.integers(0, 9), st.integers(0, 50), st.integers(0, 9))
def test_a_rows_number_is_the_same_either_way(seed, index, position, stream):
    row = SamplingRow(SamplingParams(temperature=1.0), (), (0,) * position, seed, index, stream)
    key, counter = (np.array([part], np.uint64) for part in row.random_stream)
    assert first_uniforms(key, counter).tolist() == [uniform(row)]
