"""transformers replaces functions of the whole process while it makes a model: two threads must not do so at once."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from transformers import PreTrainedModel

from ewe.config import ModelConfig
from ewe.engine.models.loader import load_model
from ewe.verification.judges.builtin_judge import read_model
from ewe.verification.judges.checkpoints import builtin_path


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
    read_model(builtin_path())


@pytest.mark.parametrize("others", [_language_model, _judge])
def test_models_are_made_one_after_the_other(monkeypatch: pytest.MonkeyPatch, others: Callable[[], None]) -> None:
    with _meeting(monkeypatch) as met, ThreadPoolExecutor(2) as pool:
        for job in [pool.submit(_language_model), pool.submit(others)]:
            job.result()
    assert met == []


IMPORTS = """
    import threading, time
    from ewe.config.loading import import_transformers
    problems = []

    def load(delay_s, needs):
        time.sleep(delay_s)
        try:
            import_transformers()
            exec(needs)
        except ImportError as error:
            problems.append(error)

    jobs = (0.0, "import sentence_transformers"), (0.3, "from transformers import AutoConfig")
    threads = [threading.Thread(target=load, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(problems)
"""


def test_an_encoder_and_a_judge_may_come_at_the_same_time() -> None:
    pytest.importorskip("sentence_transformers", reason="ewe-engine[dense] is not installed")
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(IMPORTS)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
