"""Ending OpenMP's workers: they come back, and results stay what they are."""

import torch

from ewe.engine.models import openmp


def test_a_thread_computes_the_same_afterwards():
    x = torch.randn(300, 300, generator=torch.Generator().manual_seed(0))
    before = x @ x
    openmp.end_workers()
    torch.testing.assert_close(x @ x, before)


def test_an_openmp_that_cannot_is_left_alone(monkeypatch):
    monkeypatch.setattr(openmp.ctypes, "CDLL", lambda _: object())
    openmp.end_workers()
