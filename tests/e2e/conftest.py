"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests that need one."""
    import chromium_rig

    driver = chromium_rig.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()
