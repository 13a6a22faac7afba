"""Choosing tokens: every parameter against a small independent reference, streams, exact distributions."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ewe.engine.sampling import sampler
from ewe.engine.sampling.sampler import SamplingRow, sample
from ewe.types.sampling_params import SamplingParams

VOCAB = 8
GREEDY = SamplingParams()


def row(params: SamplingParams = GREEDY, **changes: object) -> SamplingRow:
    base = SamplingRow(params, prompt_ids=(1, 2), output_ids=(), seed=0, temperature=params.temperature)
    return replace(base, **changes)  # type: ignore[arg-type]


def reference_weights(logits: list[float], params: SamplingParams) -> list[float]:
    """The distribution that a request draws from, in plain Python: temperature, top_k, top_p, min_p, in that order."""
    scaled = [value / params.temperature for value in logits]
    order = sorted(range(len(scaled)), key=lambda i: (-scaled[i], i))
    if params.top_k > 0:
        order = order[: params.top_k]
    top = max(scaled)
    mass = {i: math.exp(scaled[i] - top) for i in order}
    total = sum(mass.values())
    kept, before = [], 0.0
    for i in order:
        if before < params.top_p and mass[i] >= params.min_p * mass[order[0]]:
            kept.append(i)
        before += mass[i] / total
    weights = [mass[i] if i in kept else 0.0 for i in range(len(logits))]
    return [weight / sum(weights) for weight in weights]


def drawn(monkeypatch: pytest.MonkeyPatch, logits: list[float], params: SamplingParams, draws: int) -> list[float]:
    """The share of each token over evenly spaced points of the unit interval: the exact distribution, up to 1/draws."""
    points = iter((number + 0.5) / draws for number in range(draws))
    monkeypatch.setattr(sampler, "uniform", lambda _: next(points))
    tokens = sample(torch.tensor([logits] * draws), [row(params)] * draws, with_entropy=False).read()
    counts = Counter(token.id for token in tokens)
    return [counts[i] / draws for i in range(len(logits))]


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1.0),
        SamplingParams(temperature=0.3),
        SamplingParams(temperature=2.5),
        SamplingParams(temperature=1.0, top_k=3),
        SamplingParams(temperature=1.0, top_k=1),
        SamplingParams(temperature=1.0, top_k=-1),
        SamplingParams(temperature=1.0, top_p=0.6),
        SamplingParams(temperature=1.0, top_p=0.01),
        SamplingParams(temperature=1.0, min_p=0.2),
        SamplingParams(temperature=0.7, top_k=5, top_p=0.8, min_p=0.05),
    ],
    ids=lambda p: f"t{p.temperature}-k{p.top_k}-p{p.top_p}-m{p.min_p}",
)
def test_the_distribution_is_that_of_the_reference(monkeypatch: pytest.MonkeyPatch, params: SamplingParams) -> None:
    logits = [0.3, 2.0, -1.0, 1.2, 0.9, -math.inf, 1.9, -3.0]
    draws = 2000
    shares = drawn(monkeypatch, logits, params, draws)
    expected = reference_weights(logits, params)
    assert shares == pytest.approx(expected, abs=1.5 / draws)
    assert all(share == 0 for share, weight in zip(shares, expected, strict=True) if weight == 0)


def test_uniform_numbers_are_uniform_and_independent_of_one_another() -> None:
    """By counting: a chi-square test over cells of pairs of neighbouring draws."""
    params = SamplingParams(temperature=1.0)
    numbers = [sampler.uniform(row(params, output_ids=(0,) * n)) for n in range(2001)]
    assert all(0.0 <= number < 1.0 for number in numbers)
    cells = Counter((int(a * 5), int(b * 5)) for a, b in pairwise(numbers))
    expected = 2000 / 25
    chi_square = sum((cells[i, j] - expected) ** 2 / expected for i in range(5) for j in range(5))
    assert chi_square < 51.2  # 24 degrees of freedom, p = 0.001


def test_a_draw_depends_on_seed_answer_position_and_stream_alone() -> None:
    params = SamplingParams(temperature=1.0)
    base = row(params, seed=7, output_ids=(3, 3))
    same = [replace(base, prompt_ids=(9, 9, 9)), replace(base, output_ids=(1, 5)), replace(base, temperature=0.2)]
    others = [replace(base, seed=8), replace(base, index=1), replace(base, stream=1), replace(base, output_ids=(3,))]
    assert {sampler.uniform(item) for item in same} == {sampler.uniform(base)}
    assert len({sampler.uniform(item) for item in [base, *others]}) == 5
    # A seed of any size and sign is taken.
    assert sampler.uniform(replace(base, seed=-1)) != sampler.uniform(replace(base, seed=2**63))


def test_what_else_is_in_the_batch_changes_nothing() -> None:
    torch.manual_seed(1)
    logits = torch.randn(6, VOCAB)
    rows = [row(SamplingParams(temperature=t, top_p=0.9), seed=s) for t, s in [(1, 1), (0, 2), (2, 3)] * 2]
    together = sample(logits, rows, with_entropy=True).read()
    alone = [sample(logits[i : i + 1], rows[i : i + 1], with_entropy=True).read()[0] for i in range(6)]
    assert together == alone


def test_a_draw_at_the_very_end_never_picks_a_banned_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "uniform", lambda _: 1.0)  # what rounding could make of a number just below 1
    logits = torch.tensor([[0.0, 1.0, 0.0, 0.5]])
    [token] = sample(logits, [row(SamplingParams(temperature=1.0), banned=(2, 3))], with_entropy=False).read()
    assert token.id == 0


# --- greedy, penalties, biases


def test_greedy_takes_the_first_of_the_likeliest() -> None:
    tokens = sample(torch.tensor([[0.0, 3.0, 3.0], [2.0, 1.0, 0.0]]), [row(), row()], with_entropy=False).read()
    assert [token.id for token in tokens] == [1, 0]


def greedy(logits: list[float], params: SamplingParams, **changes: object) -> int:
    return sample(torch.tensor([logits]), [row(params, **changes)], with_entropy=False).read()[0].id


def test_presence_and_frequency_penalties_count_the_output_only() -> None:
    logits = [1.0, 1.4, 0.9]
    presence, frequency = SamplingParams(presence_penalty=0.3), SamplingParams(frequency_penalty=0.3)
    assert greedy(logits, presence, prompt_ids=(1,)) == 1  # the prompt does not count
    assert greedy(logits, presence, output_ids=(1,)) == 1  # 1.1 is still the most
    assert greedy(logits, SamplingParams(presence_penalty=0.5), output_ids=(1,)) == 0
    assert greedy(logits, presence, output_ids=(1, 1)) == 1  # presence counts once,
    assert greedy(logits, frequency, output_ids=(1, 1)) == 0  # frequency every time
    assert greedy(logits, SamplingParams(presence_penalty=-0.6), output_ids=(2,)) == 2


def test_repetition_penalty_counts_the_prompt_too_and_shrinks_either_sign() -> None:
    params = SamplingParams(repetition_penalty=2.0)
    assert greedy([1.0, 1.8, 0.0], params, prompt_ids=(1,)) == 0  # 0.9
    assert greedy([1.0, 1.8, 0.0], params, prompt_ids=(), output_ids=(1, 1)) == 0  # once, however often it stands
    assert greedy([-0.6, -0.4, -2.0], params, prompt_ids=(1,)) == 0  # -0.8: a negative logit goes down too
    assert greedy([1.0, 1.8, 0.0], SamplingParams(repetition_penalty=0.5), prompt_ids=(0,)) == 0  # under 1: liked


def test_logit_bias_and_bans() -> None:
    assert greedy([1.0, 0.0, 0.0], SamplingParams(logit_bias={2: 1.5, 0: -0.2})) == 2
    assert greedy([1.0, 0.9, 0.0], SamplingParams(), banned=(0,)) == 1
    assert greedy([1.0, 0.9, 0.0], SamplingParams(logit_bias={0: 90.0}), banned=(0,)) == 1


def test_penalties_shape_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    params = SamplingParams(temperature=1.0, frequency_penalty=1.0, logit_bias={0: 1.0})
    points = iter((number + 0.5) / 1000 for number in range(1000))
    monkeypatch.setattr(sampler, "uniform", lambda _: next(points))
    rows = [row(params, output_ids=(1, 1))] * 1000
    counts = Counter(token.id for token in sample(torch.zeros(1000, 3), rows, with_entropy=False).read())
    expected = reference_weights([1.0, -2.0, 0.0], SamplingParams(temperature=1.0))
    assert [counts[i] / 1000 for i in range(3)] == pytest.approx(expected, abs=2e-3)


def test_a_retry_is_drawn_at_its_own_temperature() -> None:
    logits = torch.tensor([[1.0, 0.9]] * 50)
    rows = [row(SamplingParams(), temperature=1.0, stream=n) for n in range(50)]
    assert {token.id for token in sample(logits, rows, with_entropy=False).read()} == {0, 1}


# --- what is reported


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), count=st.sampled_from([None, 0, 1, 3, 99]))
def test_log_probabilities_are_those_of_the_raw_logits(seed: int, count: int | None) -> None:
    logits = torch.randn(1, VOCAB, generator=torch.Generator().manual_seed(seed)) * 3
    params = SamplingParams(
        temperature=0.5, top_k=4, presence_penalty=1.0, repetition_penalty=1.3, logit_bias={0: 2.0}, logprobs=count
    )
    [token] = sample(logits, [row(params, output_ids=(0, 3), seed=seed)], with_entropy=True).read()

    expected = torch.log_softmax(logits[0].double(), dim=-1)
    assert token.logprob == pytest.approx(float(expected[token.id]), abs=1e-6)
    assert token.entropy == pytest.approx(float(-(expected.exp() * expected).sum()), abs=1e-6)
    if not count:
        assert token.top_logprobs is None
    else:
        values, ids = expected.topk(min(count, VOCAB))
        top = dict(zip(ids.tolist(), values.tolist(), strict=True))
        assert dict(token.top_logprobs or {}) == pytest.approx(top, abs=1e-6)


def test_entropy_of_a_distribution_with_impossible_tokens_is_finite() -> None:
    [token] = sample(torch.tensor([[0.0, -math.inf, 0.0]]), [row()], with_entropy=True).read()
    assert token.entropy == pytest.approx(math.log(2))
    assert sample(torch.zeros(1, 3), [row()], with_entropy=False).read()[0].entropy == 0
