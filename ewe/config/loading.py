"""Loading models: one at a time in a process, and how far it is, for those who wait for it."""

import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoadStep:
    """What is being done now. done, total: how many of what `unit` names; total is 0 where nothing is counted."""

    phase: str
    done: int = 0
    total: int = 0
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.phase}: {self.done} of {self.total} {self.unit}" if self.total else self.phase


OnLoad = Callable[[LoadStep], object]
"""Called as each phase begins, and as what it counts goes on; from the thread that loads."""


def ignore_step(step: LoadStep) -> None:
    """For those who do not want to know."""


WEIGHTS_LOCK = threading.RLock()
"""Held by whoever makes a model or reads its weights.

Meanwhile transformers replaces functions of torch and of its own classes, in the whole process: a model that another
thread makes then would lack its tied weights.
"""


def import_transformers() -> None:
    """Imports it, to be called before anything that imports it in a thread of its own.

    It puts another module in its own place in the end: a thread that meets it half imported gets one without names.
    """
    with WEIGHTS_LOCK:
        importlib.import_module("transformers")


def import_torch() -> None:
    """Imports it, for those who need no transformers; not while another thread imports either."""
    with WEIGHTS_LOCK:
        importlib.import_module("torch")
