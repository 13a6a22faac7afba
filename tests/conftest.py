"""What every test shares. Nothing heavy is imported here: the process that only hands out tests reads this file too."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Generator, Iterator
from functools import cache
from typing import Any

import pytest
from environment import same_terminal, settle, share_cores  # noqa: F401  (a fixture for every test)
from hypothesis import settings

settle()
# The same examples on every run, and no failures for slowness. Fewer than by default, which `make test-slow` draws.
settings.register_profile("ewe", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("thorough", parent=settings.get_profile("ewe"), max_examples=100)
settings.load_profile("ewe")


def pytest_configure(config: pytest.Config) -> None:
    share_cores(config.getoption("numprocesses", None) or 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What importing makes is there to stay: looking for garbage in it takes a fifth of the time, and later a second
    at each look.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        hand_on_logs()


def hand_on_logs() -> None:
    """pytest attaches its handlers to each logger that hands nothing on, six times a test: 1 ms for torch's 50."""
    for logger in logging.root.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            logger.propagate = True


def pytest_unconfigure() -> None:
    gc.unfreeze()  # Else libraries report as leaked what the end of the process would have freed.


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart() -> None:
    """In the processes that run tests; before anything that imports Triton."""
    import triton_interpreter  # noqa: F401
    import typer.testing

    # Typer makes all commands anew for each one that is run: 50 ms.
    typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[assignment]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What a test draws does not depend on the tests before it."""
    import torch

    # Not torch.manual_seed: without a GPU it keeps a trace of each call for the day that one is there.
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The order of the tests, if pytest-randomly chose it."""
    seed = config.getoption("randomly_seed", None)
    if seed is not None:
        terminalreporter.line(f"this order again: --randomly-seed={seed}")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests that need one."""
    import chromium_rig  # of the end-to-end tests, whose folder pytest puts on the path

    driver = chromium_rig.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """One PostgreSQL server for all tests that need one."""
    import postgres_server

    yield from postgres_server.started()


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    """Makes places for stores of memories: folders, or URLs of empty schemas."""
    if request.param == "sqlite":
        return lambda: tmp_path_factory.mktemp("memories") / "store"
    return request.getfixturevalue("postgres").new_schema
