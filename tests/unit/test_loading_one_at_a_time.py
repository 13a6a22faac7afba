"""transformers replaces functions of the whole process while it makes a model: two threads must not do so at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from transformers import PreTrainedModel

from ewe.config import ModelConfig
from ewe.engine.models.loader import load_model
from ewe.verification.judges.builtin_judge import load_builtin


@contextmanager
def _meeting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Has whoever makes a model wait for another one who does; notes those who met."""
    both, met, make = Barrier(2), [], PreTrainedModel.__init__

    def wait_and_make(self: Any, *args: Any, **kwargs: Any) -> None:
        with suppress(BrokenBarrierError):
            met.append(both.wait(timeout=1.0))
        make(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(PreTrainedModel, "__init__", wait_and_make)
        yield met


def _language_model() -> None:
    load_model(ModelConfig(name="builtin", device="cpu"))


def _judge() -> None:
    load_builtin("cpu")


@pytest.mark.parametrize("others", [_language_model, _judge])
def test_models_are_made_one_after_the_other(monkeypatch: pytest.MonkeyPatch, others: Callable[[], None]) -> None:
    with _meeting(monkeypatch) as met, ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(_language_model), pool.submit(others)]:
            job.result()
    assert met == []
