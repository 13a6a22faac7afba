"""Which device and precision "auto" stands for; the GPUs here are made up."""

from __future__ import annotations

import logging

import pytest
import torch

from ewe.config import gpu_driver
from ewe.engine.models.device import precision_on, usable_device

CUDA = torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("capability", "own", "used"),
    [
        ((7, 5), torch.bfloat16, torch.float16),
        ((7, 5), torch.float32, torch.float32),
        ((8, 0), torch.bfloat16, torch.bfloat16),
        ((9, 0), torch.float16, torch.float16),
    ],
)
def test_a_gpu_without_bfloat16_gets_float16_and_a_warning(monkeypatch, caplog, capability, own, used):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Made-up 7")
    with caplog.at_level(logging.WARNING):
        assert precision_on(CUDA, own) == used
    assert ("Made-up 7 has no bfloat16" in caplog.text) == (used != own)
    assert precision_on(torch.device("cpu"), own) == torch.float32


@pytest.mark.parametrize(("built", "said"), [(None, "built for CPUs"), ("12.8", "older than torch needs")])
def test_a_gpu_that_torch_does_not_see_is_told(monkeypatch, caplog, tmp_path, built, said):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", built)
    driver = tmp_path / "version"
    monkeypatch.setattr(gpu_driver, "_NVIDIA", driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with caplog.at_level(logging.WARNING):
        assert usable_device("auto").type == "cpu"
        assert not caplog.records
        driver.touch()
        assert usable_device("cpu").type == "cpu"
        assert not caplog.records
        usable_device("auto")
    assert said in caplog.text


def test_a_gpu_that_is_hidden_is_none(monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    driver = tmp_path / "version"
    driver.touch()
    monkeypatch.setattr(gpu_driver, "_NVIDIA", driver)
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert not gpu_driver.has_gpu_driver()
        assert usable_device("auto").type == "cpu"
    assert not caplog.records
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert gpu_driver.has_gpu_driver()
