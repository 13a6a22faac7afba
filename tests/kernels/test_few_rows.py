"""Products of few rows, with norms, gates and sums on the way, against float64."""

from __future__ import annotations

import pytest
import torch
from ewe_kernels.few_rows import MOST_ROWS, few_rows
from ewe_kernels.references import gated_product, rms_normed
from kernel_parts import PRECISIONS
from tolerances import ATTENTION

EPS = 1e-5


def random(device, dtype, *shape):
    return (torch.randn(shape) / shape[-1] ** 0.25).to(device, dtype)


def close(found, expected, dtype):
    torch.testing.assert_close(found.cpu().double(), expected, atol=8 * ATTENTION[dtype], rtol=4 * ATTENTION[dtype])


@pytest.mark.parametrize("sizes", [(1, 40, 300), (5, 16, 64)], ids=str)
@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_products_and_what_is_around_them(device, dtype, sizes):
    torch.manual_seed(5)
    rows, outputs, size = sizes
    inputs, matrix = random(device, dtype, rows, size), random(device, dtype, outputs, size)
    bias, factors, total = (random(device, dtype, *shape) for shape in ((outputs,), (size,), (rows, outputs)))
    exact, plain, around = matrix.cpu().double(), inputs.cpu().double(), total.cpu().double()
    normed = rms_normed(plain, factors.cpu(), EPS)

    close(few_rows(inputs, matrix, bias), plain @ exact.T + bias.cpu(), dtype)
    close(few_rows(inputs, matrix, norm=(factors, EPS)), normed @ exact.T, dtype)
    found = few_rows(inputs, matrix, add_to=total)
    assert found is total
    close(found, plain @ exact.T + around, dtype)
    half = outputs // 2
    for activation in ("silu", "gelu_tanh"):
        both = normed @ exact.T
        expected = gated_product(both[:, :half], both[:, half:], activation)
        close(few_rows(inputs, matrix, norm=(factors, EPS), gate=activation), expected, dtype)


def test_what_does_not_fit_is_refused():
    inputs, matrix = torch.zeros(2, 8), torch.zeros(6, 8)
    for arguments, message in (
        ({"inputs": torch.zeros(MOST_ROWS + 1, 8)}, "dense rows"),
        ({"matrix": torch.zeros(6, 7)}, "a matrix of shape"),
        ({"bias": torch.zeros(5)}, "a bias of shape"),
        ({"bias": torch.zeros(3), "gate": "silu"}, "a bias of shape"),
        ({"norm": (torch.ones(7), EPS)}, "factors of shape"),
        ({"add_to": torch.zeros(2, 5)}, "cannot be added"),
        ({"matrix": matrix.half()}, "must agree"),
    ):
        with pytest.raises(ValueError, match=message):
            few_rows(**{"inputs": inputs, "matrix": matrix} | arguments)
