"""One environment for every test, whatever the machine, the terminal and the number of test processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ewe.config.cache_folder import cache_folder

# Where `ewe model get` has put real models: the variable outlives the cache of the tests' own, in workers too.
REAL_CACHE = "TESTS_REAL_CACHE"
# Wider than any path, so that no phrase of an error box or a help text is broken.
TERMINAL = {"COLUMNS": "5000", "LINES": "50", "TERM": "dumb", "NO_COLOR": "1"}
# Make rich and typer take a pipe for a terminal, or set its width.
OVERRIDES = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TERMINAL_WIDTH")


def settle() -> None:
    """No settings of the engine from outside, a cache of its own, and no proxy on the way to the tests' servers."""
    os.environ.setdefault(REAL_CACHE, str(cache_folder()))
    for name in [name for name in os.environ if name.startswith("EWE_")]:
        del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="ewe-tests-"))
    os.environ["EWE_CACHE_DIR"] = str(folder / "cache")
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    trust_one_authority(folder / "authority.pem")


def trust_one_authority(path: Path) -> None:
    """No test leaves this machine, and each HTTP client would read 150 certificates: 35 ms."""
    with suppress(ImportError):
        import certifi

        last = "-----END CERTIFICATE-----\n"
        first, found, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(last)
        path.write_text(first + found, encoding="utf-8")
        os.environ["SSL_CERT_FILE"] = str(path)


def share_cores(workers: int) -> None:
    """Workers inherit from pytest how many threads each may have, before torch or numpy asks, once."""
    if workers > 1:
        threads = str(max(1, len(os.sched_getaffinity(0)) // workers))
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
            os.environ.setdefault(name, threads)


@contextmanager
def fixed_terminal() -> Iterator[None]:
    """The terminal that tests and their processes see."""
    with pytest.MonkeyPatch.context() as patch:
        for name in OVERRIDES:
            patch.delenv(name, raising=False)
        for name, value in TERMINAL.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(autouse=True)
def same_terminal() -> Iterator[None]:
    """The same terminal for every test, and for that test only: pytest's own output keeps the real one."""
    with fixed_terminal():
        yield
