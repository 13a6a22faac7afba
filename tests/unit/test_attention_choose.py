"""Which backend a device gets; the GPUs here are made up."""

from __future__ import annotations

import logging
import sys
from contextlib import nullcontext

import pytest
import torch

from ewe.engine.attention import choose
from ewe.engine.attention.torch_backend import TorchBackend
from ewe.engine.attention.triton_backend import TritonBackend
from ewe.engine.kvcache.fp8 import FP8
from ewe.engine.kvcache.pool import KVPool, LayerShape

CUDA = torch.device("cuda", 0)


@pytest.fixture
def pool():
    return KVPool([LayerShape(2, 16, 16)], 4, 4, torch.float32, "cpu")


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of a given capability."""

    def make(capability):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Made-up 9")
        properties = type("Properties", (), {"multi_processor_count": 132})
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
        monkeypatch.setattr(choose, "_compile_failure", lambda device: None)

    return make


def test_a_cpu_gets_torch_without_a_word(pool, caplog):
    assert isinstance(choose.choose_backend(torch.device("cpu"), pool), TorchBackend)
    assert not caplog.records


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)])
def test_a_gpu_gets_the_kernels(pool, gpu, caplog, capability):
    gpu(capability)
    assert isinstance(choose.choose_backend(CUDA, pool), TritonBackend)
    assert not caplog.records


def test_an_old_gpu_gets_torch_and_one_line(pool, gpu, caplog):
    gpu((7, 5))
    with caplog.at_level(logging.WARNING):
        assert isinstance(choose.choose_backend(CUDA, pool), TorchBackend)
    [record] = caplog.records
    assert "Made-up 9 is sm_75" in record.getMessage()


def test_over_fp8_a_gpu_needs_sm_89(pool, gpu, caplog):
    small = KVPool(pool.layer_shapes, 4, 4, FP8, "cpu")
    gpu((8, 9))
    assert isinstance(choose.choose_backend(CUDA, small), TritonBackend)
    gpu((8, 0))
    with caplog.at_level(logging.WARNING):
        assert isinstance(choose.choose_backend(CUDA, small), TorchBackend)
    [record] = caplog.records
    assert "Made-up 9 is sm_80" in record.getMessage()
    assert "cache.dtype" in record.getMessage()


def test_without_triton_a_gpu_gets_torch_and_the_line_says_what_to_install(pool, gpu, caplog, monkeypatch):
    gpu((9, 0))
    monkeypatch.setattr(choose.importlib.util, "find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING):
        assert isinstance(choose.choose_backend(CUDA, pool), TorchBackend)
    [record] = caplog.records
    assert "ewe-engine[gpu]" in record.getMessage()


def test_where_no_kernel_can_be_compiled_a_gpu_gets_torch_and_the_line_says_what_is_missing(
    pool, gpu, caplog, monkeypatch
):
    compiles = choose._compile_failure
    gpu((9, 0))
    monkeypatch.setattr(choose, "_compile_failure", compiles)
    monkeypatch.setattr(choose, "_compiled_on", set())
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(choose.torch, "ones", lambda *shape, device: torch.zeros(shape))

    def fail(*arguments):
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.\nMore.")

    monkeypatch.setattr("ewe_kernels.norm.rms_norm", fail)
    with caplog.at_level(logging.WARNING):
        assert isinstance(choose.choose_backend(CUDA, pool), TorchBackend)
    [record] = caplog.records
    assert "Failed to find C compiler" in record.getMessage()
    assert "apt install gcc" in record.getMessage()
    assert "More." not in record.getMessage()


def test_where_triton_cannot_be_imported_a_gpu_gets_torch(pool, gpu, caplog, monkeypatch):
    compiles = choose._compile_failure
    gpu((9, 0))
    monkeypatch.setattr(choose, "_compile_failure", compiles)
    monkeypatch.setattr(choose, "_compiled_on", set())
    monkeypatch.setitem(sys.modules, "ewe_kernels.norm", None)
    with caplog.at_level(logging.WARNING):
        assert isinstance(choose.choose_backend(CUDA, pool), TorchBackend)
    assert "ewe_kernels.norm" in caplog.text
