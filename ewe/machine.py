"""What of the machine this process may use."""

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of the container: microseconds of work, and in how many of time


def usable_cpus() -> int:
    """Cores that this process may use, at least 1: those it is bound to, or fewer where its container has a quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = map(int, _QUOTA.read_text().split())
    except (OSError, ValueError):  # there is none, or it is "max"
        return cpus
    return max(1, min(cpus, math.ceil(quota / period)))
