"""Sampling in the kernels gives the tokens that sorting gives, with the same seeds, penalties, bans and reports."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from triton_interpreter import INTERPRETED

from ewe.engine.sampling.fused_sampler import sample_fused
from ewe.engine.sampling.sampler import SamplingRow, sample, sample_in_torch
from ewe.types.sampling_params import SamplingParams

VOCAB = 150
on_devices = pytest.mark.parametrize(
    "device",
    [
        pytest.param("cpu", marks=pytest.mark.skipif(not INTERPRETED, reason="with a GPU at hand, kernels run there")),
        pytest.param("cuda", marks=pytest.mark.gpu),
    ],
)
TOKENS = st.integers(0, VOCAB - 1)
PARAMS = st.builds(
    SamplingParams,
    temperature=st.sampled_from([0.0, 0.7, 1.0, 2.0]),
    top_k=st.sampled_from([-1, 0, 1, 5, 500]),
    top_p=st.sampled_from([0.1, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.1]),
    presence_penalty=st.sampled_from([0.0, 0.6]),
    frequency_penalty=st.sampled_from([0.0, -0.4]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    logit_bias=st.dictionaries(TOKENS, st.floats(-5, 5), max_size=2),
    logprobs=st.sampled_from([None, 0, 3]),
)


@st.composite
def sampling_rows(draw):
    params = draw(PARAMS)
    allowed = None
    if draw(st.integers(0, 3)) == 0:
        allowed = np.zeros(VOCAB, bool)
        allowed[draw(st.lists(TOKENS, min_size=1, max_size=9))] = True
    return SamplingRow(
        params,
        prompt_ids=draw(st.lists(TOKENS, max_size=5)),
        output_ids=draw(st.lists(TOKENS, max_size=8)),
        seed=draw(st.integers(0, 2**63)),
        index=draw(st.integers(0, 2)),
        stream=draw(st.integers(0, 2)),
        temperature=params.temperature,
        banned=draw(st.lists(TOKENS, max_size=2)) if allowed is None else (),
        allowed=allowed,
    )


@on_devices
@settings(max_examples=6)
@given(rows=st.lists(sampling_rows(), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_the_tokens_are_those_of_the_reference(device, rows, seed):
    logits = torch.randn(len(rows), VOCAB, generator=torch.Generator().manual_seed(seed)) * 2
    logits[:, 3] = -math.inf
    found = sample_fused(logits.to(device), rows, with_entropy=True).read()
    expected = sample_in_torch(logits, rows, with_entropy=True).read()
    assert [token.id for token in found] == [token.id for token in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=1e-5)
        assert one.entropy == pytest.approx(other.entropy, abs=1e-5)
        assert (one.top_logprobs is None) == (other.top_logprobs is None)
        assert dict(one.top_logprobs or {}) == pytest.approx(dict(other.top_logprobs or {}), abs=1e-5)


@on_devices
def test_a_token_depends_on_its_own_row_alone(device):
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(1)).to(device)
    params = SamplingParams(temperature=1.0, top_p=0.9, frequency_penalty=0.3)
    rows = [SamplingRow(params, (1, 2), (4, 4, 5), seed, temperature=1.0) for seed in range(3)]
    together = sample_fused(logits, rows, with_entropy=False).read()
    alone = [sample_fused(logits[i : i + 1], rows[i : i + 1], with_entropy=False).read()[0] for i in range(3)]
    assert together == alone


@on_devices
def test_the_logits_are_left_as_they_were(device):
    logits = torch.randn(2, VOCAB).to(device)
    before = logits.clone()
    rows = [SamplingRow(SamplingParams(repetition_penalty=2.0), (1, 2), (3,), 0, banned=(5,))] * 2
    sample_fused(logits, rows, with_entropy=False).read()
    assert torch.equal(logits, before)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@on_devices
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_row_that_is_not_finite_has_no_log_probability(device, bad, temperature):
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(2)).to(device)
    logits[1, 7] = bad
    params = SamplingParams(temperature=temperature, top_p=0.9)
    rows = [SamplingRow(params, (), (), 5, temperature=temperature)] * 3
    for chosen in (sample_fused, sample_in_torch, sample):
        tokens = chosen(logits, rows, False).read()
        assert [math.isnan(token.logprob) for token in tokens] == [False, True, False]
        assert all(0 <= token.id < VOCAB for token in tokens)
    impossible = torch.full((1, VOCAB), -math.inf, device=device)
    for chosen in (sample_fused, sample_in_torch):
        assert math.isnan(chosen(impossible, rows[:1], False).read()[0].logprob)
