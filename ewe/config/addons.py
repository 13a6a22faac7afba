"""What is built on top of the engine and mounted in it: the long-term memories, with their routes and commands."""

from importlib import import_module
from typing import Any


def longterm(part: str) -> Any:
    """A module of `ewe.longterm`, imported when it is asked for: nothing else in the engine knows that it exists."""
    return import_module(f"ewe.longterm.{part}")
