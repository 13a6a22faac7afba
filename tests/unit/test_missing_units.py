"""Which units a context still waits for is asked once, and again after a pass that failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ewe.engine.scheduling.inflight_batch import SchedulerOutput
from ewe.engine.scheduling.scheduler import Scheduler
from ewe.engine.units.working_memory import SeenUnits


def test_a_unit_of_a_failed_pass_is_missing_again() -> None:
    nothing: Any = None
    scheduler = Scheduler(nothing, nothing, nothing, nothing, nothing, 1.0)
    unit: Any = SimpleNamespace(ready=False, num_planned=3)
    memory = SimpleNamespace(seen=SeenUnits((), (unit,), (), ()))
    sequence: Any = SimpleNamespace(schedule=SimpleNamespace(prefix=None), memory=memory)
    assert scheduler._missing(sequence) == [unit]
    unit.ready = True
    assert scheduler._missing(sequence) == []
    scheduler.failed(SchedulerOutput(units=[unit]))
    assert scheduler._missing(sequence) == [unit]
