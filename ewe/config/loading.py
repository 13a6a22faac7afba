"""How far the opening of an engine is, for those who wait for it."""

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
