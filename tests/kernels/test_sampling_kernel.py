"""Sampling without a sort, against sampling with one in float64."""

from __future__ import annotations

import math

import pytest
import torch
from ewe_kernels import candidates, sampling
from ewe_kernels.penalties import penalise
from ewe_kernels.references import penalised, sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import ATTENTION
from triton.runtime.interpreter import interpreter_builder
from triton_interpreter import INTERPRETED

VOCAB = 40
NOTHING = -7
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(autouse=True)
def several_parts(monkeypatch):
    """The vocabulary takes more than one program, the last of them partly filled."""
    monkeypatch.setattr(candidates, "_MOST_LOGITS", 32)
    monkeypatch.setattr(sampling, "_BLOCK", 32)


def run(logits, rows, device="cpu", original=None):
    """rows: (temperature, top_k, top_p, min_p, point) each; original: the logits before penalties, if they differ."""
    columns = list(zip(*rows, strict=True))
    temperatures, top_ps, min_ps, points = (torch.tensor(columns[i], device=device) * 1.0 for i in (0, 2, 3, 4))
    top_ks = torch.tensor(columns[1], dtype=torch.int32, device=device)
    logits = logits.to(device)
    drawn = torch.full((len(rows), 2), NOTHING, device=device)
    original = logits if original is None else original.to(device)
    sampling.sample_tokens(original, logits, drawn, temperatures, top_ks, top_ps, min_ps, points)
    return sampling.ids_and_logprobs(drawn)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("capacity", [4, VOCAB])
@pytest.mark.parametrize("device", DEVICES)
def test_equals_sampling_with_a_sort(device, capacity, monkeypatch):
    """Whether the tokens that can be drawn are listed or too many for that."""
    monkeypatch.setattr(candidates, "_CAPACITY", capacity)
    generator = torch.Generator().manual_seed(3)
    rows = [
        (0.0, 0, 1.0, 0.0, 0.5),
        (1.0, 0, 1.0, 0.0, 0.61),
        (0.7, 5, 1.0, 0.0, 0.93),
        (1.3, 0, 0.8, 0.0, 0.97),
        (1.0, 12, 0.6, 0.0, 0.88),
        (2.0, 0, 1.0, 0.2, 0.99),
        (1.5, 30, 0.9, 0.05, 0.9),
        (1.0, 1, 0.5, 0.0, 0.9),
        (1.0, VOCAB, 0.9, 0.0, 0.95),
        (1.2, 8, 1.0, 0.0, 0.7),
        (1.2, 8, 0.7, 0.0, 0.7),
    ]
    logits = torch.randn(len(rows), VOCAB, generator=generator) * 3
    # Far apart, and all below zero; what is kept and what is drawn then does not depend on the sign.
    logits[-1] = -1e30 - logits[-1] * 1e-2
    logits[-2] -= 1000
    logits[0, 11] = logits[2, 11] = 3e38
    ids, logprobs = run(logits, rows, device)
    for number, row in enumerate(rows):
        expected = sampled(logits[number], *row)
        assert int(ids[number]) == expected, row
        logprob = torch.log_softmax(logits[number].double(), 0)[expected]
        assert float(logprobs[number]) == pytest.approx(float(logprob), abs=ATTENTION[torch.float32])


@settings(max_examples=3)
@given(
    values=st.lists(st.sampled_from([-math.inf, -2.0, -0.0, 0.0, 1.5]), min_size=35, max_size=VOCAB),
    top_k=st.integers(0, 40),
    top_p=st.sampled_from([0.35, 0.83, 1.0]),
    point=st.floats(0.0, 0.999),
)
def test_ties_go_by_id_and_the_impossible_never_comes(values, top_k, top_p, point):
    values[7] = 1.5
    ids, _ = run(torch.tensor([values]), [(1.0, top_k, top_p, 0.0, point)])
    token = int(ids[0])
    assert values[token] > -math.inf
    # Rounding may move a point that lies on a border to the neighbour.
    near = {
        sampled(torch.tensor(values), 1.0, top_k, top_p, 0.0, min(max(point + d, 0), 0.9999)) for d in (-1e-5, 1e-5)
    }
    assert token in near


@pytest.mark.parametrize("row", [(1.0, 3, 1.0, 0.5, 0.99), (1.0, 0, 1.0, 0.0, 0.5), (1.0, 20, 1.0, 0.1, 0.9)])
def test_both_zeros_tie_and_min_p_takes_ties_away(row):
    logits = torch.tensor([[-0.0, 0.0] * (VOCAB // 2)])
    logits[0, 7] = 2.0
    assert int(run(logits, [row])[0]) == sampled(logits[0], *row)


def test_the_end_of_the_distribution_is_reached_and_not_passed():
    logits = torch.full((1, VOCAB), -math.inf)
    logits[0, [3, 20]] = torch.tensor([2.0, 1.0])
    assert run(logits, [(1.0, 0, 1.0, 0.0, 1.0)])[0].tolist() == [20]


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_that_draws_nothing_keeps_what_is_there(device):
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(8))
    logits[1] = math.nan
    rows = [(0.0, 0, 1.0, 0.0, 0.5), (-1.0, 5, 0.5, 0.1, 0.5), (0.0, 0, 1.0, 0.0, 0.5)]
    ids, _ = run(logits, rows, device)
    assert ids.tolist() == [int(logits[0].argmax()), NOTHING, int(logits[2].argmax())]


@pytest.mark.parametrize("bits", [torch.float32, torch.float16, torch.bfloat16])
def test_logits_of_any_precision_scale_and_place(bits):
    """The place and the width of the bins follow the row, and neither changes the token."""
    generator = torch.Generator().manual_seed(6)
    rows = [(0.05, 0, 0.9, 0.0, 0.5), (1.0, 6, 1.0, 0.0, 0.8), (30.0, 0, 0.6, 0.0, 0.9), (1.0, 0, 1.0, 0.1, 0.7)] * 2
    logits = torch.randn(len(rows), VOCAB, generator=generator) * torch.tensor([[1.0], [5.0], [0.01], [2.0]] * 2)
    logits[4:] += torch.tensor([[300.0], [-20.0], [0.0], [-1000.0]])
    logits[:, ::3] = logits[:, 1::3].repeat_interleave(2, 1)[:, : len(logits[0, ::3])]
    logits[:, 5:9] = -math.inf
    logits = logits.to(bits).float()
    ids, _ = run(logits, rows)
    assert ids.tolist() == [sampled(logits[number], *row) for number, row in enumerate(rows)]


@pytest.mark.parametrize("row", [(1.0, 3, 1.0, 0.0, 0.999), (1.0, 0, 0.8, 0.0, 0.999), (1.0, 0, 1.0, 0.3, 0.999)])
def test_the_last_token_that_is_kept_is_listed(row):
    """Where each bin holds one logit, one bin less would be a token less."""
    logits = -0.6 * torch.arange(VOCAB)[None]
    assert run(logits, [row])[0].tolist() == [2]
    assert sampled(logits[0], *row) == 2


def reads_of(logits, rows, monkeypatch, original=None):
    """How often the kernels read the whole of logits, and the tokens."""
    ranges = [(item.data_ptr(), item.data_ptr() + item.nbytes) for item in (logits, original) if item is not None]
    count = 0
    load = interpreter_builder.create_masked_load

    def counting(pointers, mask, *rest):
        nonlocal count
        count += sum(int(((begin <= pointers.data) & (pointers.data < end) & mask.data).sum()) for begin, end in ranges)
        return load(pointers, mask, *rest)

    monkeypatch.setattr(interpreter_builder, "create_masked_load", counting)
    ids, _ = run(logits, rows, original=original)
    # A row reads one logit more, for the log-probability.
    return (count - len(rows)) / logits.numel(), ids.tolist()


@pytest.mark.skipif(not INTERPRETED, reason="reads are counted in the interpreter")
@pytest.mark.parametrize(
    ("row", "passes"),
    [
        ((0.0, 0, 1.0, 0.0, 0.0), 1),
        ((1.0, 0, 1.0, 0.0, 0.9), 2),
        ((0.7, 50, 0.9, 0.0, 0.9), 2),
        ((1.0, 0, 0.95, 0.05, 0.8), 2),
        ((1.0, 0, 1.0, 0.05, 0.8), 2),
    ],
)
@pytest.mark.parametrize("is_penalised", [False, True])
def test_the_logits_are_read_twice_at_most(row, passes, is_penalised, monkeypatch):
    """And those before penalties once, for the log-probability."""
    monkeypatch.setattr(candidates, "_MOST_LOGITS", 4096)
    monkeypatch.setattr(candidates, "_CAPACITY", 1024)
    logits = torch.randn(1, 32000, generator=torch.Generator().manual_seed(5)) * 4
    logits[0, 77] = 16.0
    found, ids = reads_of(logits, [row], monkeypatch, logits + 1 if is_penalised else None)
    assert 1 <= found <= passes + is_penalised
    assert ids == [sampled(logits[0], *row)]


@pytest.mark.skipif(not INTERPRETED, reason="reads are counted in the interpreter")
def test_a_flat_row_is_searched_itself(monkeypatch):
    """So many tokens can be drawn that none are listed: here the passes are those that tell 16 bits apart."""
    monkeypatch.setattr(candidates, "_MOST_LOGITS", 4096)
    monkeypatch.setattr(candidates, "_CAPACITY", 1024)
    monkeypatch.setattr(sampling, "_BLOCK", 1 << 13)
    logits = torch.randn(1, 8000, generator=torch.Generator().manual_seed(5)).bfloat16().float()
    row = (2.0, 0, 0.9, 0.0, 0.9)
    found, ids = reads_of(logits, [row], monkeypatch)
    assert 2 < found <= 30
    assert ids == [sampled(logits[0], *row)]


@pytest.mark.parametrize("device", DEVICES)
def test_penalties(device):
    logits = torch.randn(2, VOCAB, generator=torch.Generator().manual_seed(4))
    # Row, token, count in the output (0: in the prompt only, -1: a bias alone), bias.
    pairs = [(0, 3, 2, 0.0), (0, 39, 0, 0.0), (0, 11, -1, 4.0), (1, 3, 1, -math.inf), (1, 0, 5, 0.5)]
    penalties = [torch.tensor(item) for item in ((1.4, 0.8), (0.5, -0.3), (0.2, 0.1))]
    rows, tokens, counts = (torch.tensor([p[i] for p in pairs], dtype=torch.int32, device=device) for i in range(3))
    biases = torch.tensor([p[3] for p in pairs], device=device)
    found = logits.to(device)
    found = found.clone()
    penalise(found, rows, tokens, counts, biases, *(item.to(device) for item in penalties))
    expected = penalised(logits, pairs, *penalties)
    torch.testing.assert_close(found.cpu().double(), expected, atol=ATTENTION[torch.float32], rtol=0)


def test_what_does_not_fit_is_refused():
    one, logits = torch.ones(1), torch.zeros(1, VOCAB)
    top_k = torch.zeros(1, dtype=torch.int32)
    drawn = torch.zeros(1, 2, dtype=torch.int64)
    with pytest.raises(ValueError, match="logits must be float32"):
        sampling.sample_tokens(logits.half(), logits, drawn, one, top_k, one, one, one)
    with pytest.raises(ValueError, match="beside original"):
        sampling.sample_tokens(logits[:, 1:], logits, drawn, one, top_k, one, one, one)
    with pytest.raises(ValueError, match=r"torch\.int32"):
        sampling.sample_tokens(logits, logits, drawn, one, one, one, one, one)
    with pytest.raises(ValueError, match=r"torch\.int64"):
        sampling.sample_tokens(logits, logits, drawn[:, 0], one, top_k, one, one, one)
