"""Packages that few tests use and that take seconds to import: imported when a test first uses them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class LateModule:
    """Stands for a module, which is imported when the first of its attributes is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # pytest looks for marks of its own in all that a test module holds
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def late_import(name: str, reason: str) -> Any:
    """As `pytest.importorskip`, without importing yet: skips the test module where the package is not installed."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(reason, allow_module_level=True)
    return LateModule(name)
