"""How many cores this process is told that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from ewe.config import cpu_count as machine


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        *(({"cpu.max": "max 100000"}, 8), ({"cpu.max": "250000 100000"}, 3), ({"cpu.max": "1000 100000"}, 1)),
        *(({"cpu.max": "1600000 100000"}, 8), ({}, 8), ({"cpu.max": "odd"}, 8)),
        ({"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_cores_are_those_it_is_bound_to_up_to_its_containers_quota(
    files: dict[str, str], cpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(8), raising=False)
    assert machine.usable_cpus() == cpus
