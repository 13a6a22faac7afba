"""What of the machine this process may use."""

import math
import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
# Of the container, in cgroups of version 2 and 1: microseconds of work, and in how many of time.
_QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))


def usable_cpus() -> int:
    """Cores that this process may use, at least 1: those it is bound to, or fewer where its container has a quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for files in _QUOTAS:
        try:
            quota, period = (int(word) for name in files for word in (_CGROUP / name).read_text().split())
        except (OSError, ValueError):  # there is none, or it is "max"
            continue
        if quota > 0:  # -1 is none too
            return max(1, min(cpus, math.ceil(quota / period)))
    return cpus
