"""The small kernels of a layer, norms and gated activations, against float64."""

from __future__ import annotations

import pytest
import torch
from ewe_kernels.gated import gated
from ewe_kernels.norm import add_normed, add_rms_norm, rms_norm
from ewe_kernels.references import gated_product, rms_normed
from kernel_parts import PRECISIONS
from tolerances import ATTENTION

EPS = 1e-5


def close(found, expected, dtype):
    torch.testing.assert_close(found.cpu().double(), expected, atol=4 * ATTENTION[dtype], rtol=2 * ATTENTION[dtype])


def random(device, dtype, *shape):
    return torch.randn(shape).to(device, dtype)


@pytest.mark.parametrize("size", [48, 1000])
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_norms_with_and_without_a_sum(device, dtype, size):
    torch.manual_seed(3)
    states, delta = (random(device, dtype, 3, size) * spread for spread in (1, 20))
    scale, delta_scale = (random(device, dtype, size) for _ in range(2))
    exact, other = states.cpu().double(), delta.cpu().double()
    close(rms_norm(states, scale, EPS), rms_normed(exact, scale.cpu(), EPS), dtype)

    for added, found_of in ((other, None), (rms_normed(other, delta_scale.cpu(), EPS), delta_scale)):
        total = states.clone()
        found = add_rms_norm(total, delta, scale, EPS, found_of)
        close(total, exact + added, dtype)
        close(found, rms_normed(exact + added, scale.cpu(), EPS), dtype)

    total = states.clone()
    add_normed(total, delta, delta_scale, EPS)
    close(total, exact + rms_normed(other, delta_scale.cpu(), EPS), dtype)


def test_a_scale_may_be_finer_than_the_states():
    torch.manual_seed(3)
    states, scale = torch.randn(2, 40).half(), torch.randn(40)
    found = rms_norm(states, scale, EPS)
    assert found.dtype == torch.float16
    close(found, rms_normed(states, scale, EPS), torch.float16)


@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_gated_activations(device, dtype, activation):
    torch.manual_seed(4)
    both = random(device, dtype, 3, 2 * 1100) * 4
    both[0, :3] = torch.tensor([-300.0, 0.0, 300.0])
    gate, up = both.split(1100, -1)
    close(gated(gate, up, activation), gated_product(gate.cpu(), up.cpu(), activation), dtype)


def test_what_does_not_fit_is_refused():
    states = torch.zeros(2, 8)
    with pytest.raises(ValueError, match="a scale of shape"):
        rms_norm(states, torch.ones(7), EPS)
    with pytest.raises(ValueError, match="to be added"):
        add_rms_norm(states, states[:1], torch.ones(8), EPS)
    with pytest.raises(ValueError, match="dense rows"):
        rms_norm(states.T, torch.ones(2), EPS)
    with pytest.raises(ValueError, match="beside up"):
        gated(states, states[:, :4], "silu")
