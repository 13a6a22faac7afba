"""What the host does for a decoding step: counted in calls of functions, which depend on no machine's speed."""

from __future__ import annotations

import argparse

from benchmarks import host_step


def test_a_step_calls_few_functions_per_row():
    figures = host_step.measure(64, argparse.Namespace(smoke=True, repeats=1))
    assert figures["rows_64_calls_per_row"] < 95
