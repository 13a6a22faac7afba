"""Products with matrices in 8 bits against their float64 reference."""

from __future__ import annotations

import pytest
import torch
from ewe_kernels import references, small_product
from ewe_kernels.small_product import MOST_ROWS, multiply
from kernel_parts import PRECISIONS
from parity.families import build
from parity.paged import PagedModel
from tolerances import ATTENTION, LOGPROBS
from torch import nn
from triton_interpreter import INTERPRETED

from ewe.engine.attention.probe import attention_layers
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.model_executor.static_decode import StaticDecoder
from ewe.engine.models.quantization import FewRows, SmallLinear, round_rows, shrink
from ewe.engine.models.small_products import try_out

DEVICES = [
    pytest.param("cpu", marks=pytest.mark.skipif(not INTERPRETED, reason="with a GPU at hand, kernels run there")),
    pytest.param("cuda", marks=pytest.mark.gpu),
]


def problem(rows, outputs, size, kind, device="cpu", dtype=torch.float32):
    generator = torch.Generator().manual_seed(rows + outputs)
    inputs = torch.randn(rows, size, generator=generator).to(dtype)
    weight, scale = round_rows(torch.randn(outputs, size, generator=generator) * size**-0.5, kind)
    bias = torch.randn(outputs, generator=generator).to(dtype)
    return [item.to(device) for item in (inputs, weight, scale, bias)]


@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
@pytest.mark.parametrize("kind", ["int8", "fp8"])
@pytest.mark.parametrize(
    ("rows", "outputs", "size"), [(1, 16, 256), (1, 33, 40), (5, 48, 300), (17, 70, 512), (MOST_ROWS, 100, 24)]
)
def test_the_product_is_that_of_the_reference(rows, outputs, size, kind, device, dtype, monkeypatch):
    monkeypatch.setattr(small_product, "_FEW_OUTPUTS", 64)  # so that both tiles are met
    inputs, weight, scale, bias = problem(rows, outputs, size, kind, device, dtype)
    tolerance = 4 * ATTENTION[dtype]
    for offset in (None, bias):
        found = multiply(inputs, weight, scale, offset)
        assert (found.dtype, found.shape) == (dtype, (rows, outputs))
        expected = references.small_product(inputs, weight, scale, offset)
        torch.testing.assert_close(found.double(), expected, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("device", "dtype"), PRECISIONS)
def test_rows_may_lie_apart(device, dtype):
    inputs, weight, scale, _ = problem(6, 20, 64, "int8", device, dtype)
    apart = torch.zeros(6, 100, device=device, dtype=dtype)
    apart[:, :64] = inputs
    assert torch.equal(multiply(apart[:, :64], weight, scale), multiply(inputs, weight, scale))


def test_what_does_not_fit_is_refused():
    inputs, weight, scale, bias = problem(2, 20, 64, "int8")
    for arguments, message in (
        ((inputs[0], weight, scale), "dense rows"),
        ((inputs.expand(65, 2, 64)[:, 0], weight, scale), "1 to 64"),
        ((inputs.T.contiguous().T, weight, scale), "dense rows"),
        ((inputs, weight.float(), scale), "int8 or float8"),
        ((inputs, weight[:, :32].contiguous(), scale), "for inputs of shape"),
        ((inputs, weight, scale.double()), "scales must be"),
        ((inputs, weight, scale, bias[:3]), "for 20 outputs"),
    ):
        with pytest.raises(ValueError, match=message):
            multiply(*arguments)


@pytest.mark.parametrize("device", DEVICES)
def test_few_rows_go_through_the_kernel_and_more_do_not(device):
    seen = []

    def count(x, *rest):
        seen.append(len(x))
        return multiply(x, *rest)

    _, weight, scale, bias = problem(1, 24, 32, "int8", device)
    bias = nn.Parameter(bias, requires_grad=False)
    plain, fused = SmallLinear(weight, scale, bias), SmallLinear(weight, scale, bias, FewRows(count, 6))
    for shape in ((1, 1, 32), (1, 6, 32), (2, 3, 32), (1, 7, 32), (1, 0, 32)):
        x = torch.randn(shape, device=device)
        torch.testing.assert_close(fused(x), plain(x), atol=1e-4, rtol=1e-4)
    assert seen == [1, 6, 6]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["int8", "fp8"])
def test_a_model_over_the_kernel_says_the_same(kind, device):
    found = []
    for few in (None, FewRows(multiply, 64)):
        model = build("phi").to(device)  # whose layers have biases
        shrink(model, kind, model.device, few)
        paged = PagedModel(model)
        context = paged.context(16, paged.encode([[5, 6, 7, 8], [9, 10, 11]]), [1.0, 0.5])
        found.append(paged.logits(context, [3, 40, 5, 61]).log_softmax(-1))
    torch.testing.assert_close(found[1], found[0], atol=LOGPROBS, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_steps_from_static_buffers_take_small_weights(device):
    """On a GPU the second of these steps is recorded, and the third replayed."""
    tokens = (7, 8, 9) if device == "cuda" else (7,)
    model = build("llama").to(device)
    shrink(model, "int8", model.device, FewRows(multiply, 64))
    found = []
    for static in (False, True):
        paged = PagedModel(model)
        backend = TritonBackend(model.device, 4, paged.pool.keys[0].shape[1])
        layers = attention_layers(model)
        decoder = StaticDecoder(model, layers, paged.pool, "paper", backend, capture=device == "cuda")
        paged.runner.static = decoder if static else None
        context = paged.context(16, paged.encode([[5, 6, 7, 8], [9, 10, 11]]), [1.0, 0.5])
        paged.logits(context, [3, 40, 5, 61])
        found.append(torch.cat([paged.run(paged.row(context, [token])).logits for token in tokens]).log_softmax(-1))
    assert decoder.num_graphs == (device == "cuda")
    torch.testing.assert_close(found[1], found[0], atol=LOGPROBS, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["int8", "fp8"])
def test_the_kernel_is_tried_out_before_it_is_used(kind, device):
    def broken(*_):
        raise RuntimeError("ptxas is not there\nand more")

    def wrong(*arguments):
        return 1.1 * multiply(*arguments)

    dtype = torch.float32 if INTERPRETED else torch.bfloat16
    for function, reason in ((multiply, None), (broken, "RuntimeError: ptxas is not there")):
        assert try_out(FewRows(function, 64), kind, torch.device(device), dtype) == reason
    assert "other numbers" in str(try_out(FewRows(wrong, 64), kind, torch.device(device), dtype))
