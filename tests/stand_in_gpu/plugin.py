"""`pytest -p stand_in_gpu.plugin`: the whole session on the stand-in."""

from __future__ import annotations

import pytest

from stand_in_gpu import in_place

_stack = in_place()
_stack.__enter__()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves out what Triton's interpreter multiplies wrongly."""
    for item in items:
        if "bfloat16" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="Triton's interpreter multiplies bfloat16 wrongly"))
