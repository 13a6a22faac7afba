"""How many cores this process is told that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewe import machine


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [("max 100000", 8), ("250000 100000", 3), ("1000 100000", 1), ("1600000 100000", 8), (None, 8), ("odd", 8)],
)
def test_cores_are_those_it_is_bound_to_up_to_its_containers_quota(
    quota: str | None, cpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if quota is not None:
        (tmp_path / "cpu.max").write_text(quota + "\n")
    monkeypatch.setattr(machine, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(8), raising=False)
    assert machine.usable_cpus() == cpus
