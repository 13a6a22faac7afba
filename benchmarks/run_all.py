"""Runs benchmarks one after the other, each in a process of its own, and keeps their JSON documents.

Those that measure the engine, each ended after its share of ten minutes with what it has by then; on a CPU --all takes
every one and lets it finish, which takes hours and the public sets. The results go to
benchmarks/results/<benchmark>-<cpu|cuda>.json; with --smoke nothing is kept. One that fails costs its own result only;
the exit status is 1 then.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys

from benchmarks.common import ROOT, parse_arguments

BENCHMARKS = (
    "attention",
    "feedback",
    "folded_vs_literal",
    "refresh_cost",
    "precomputed_units",
    "prefix_sharing",
    "small_weights",
    "cost_per_token",
    "decode_throughput",
    "launches",
    "host_step",
    "verification_overhead",
    "serve",
    "server_overhead",
    "served_step",
    "replicas",
    "overload",
    "tenants",
    "policy_throughput",
    "kept_context_staleness",
    "fp8_cache",
    "retrieval_recall",
    "longterm_store",
    "longterm_scoring",
    "longterm_locomo",
    "longterm_fever",
    "longterm_conflicts",
    "longterm_changes",
    "longterm_withdrawals",
    "longterm_extraction",
    "longterm_turns",
    "retrieval_speed",
    "stores",
    "bit_flips",
    "judge_quality",
    "judge_speed",
    "verdicts",
    "factscore_verdicts",
    "long_answers",
    "capacity",
    "checked_throughput",
)


# Seconds per benchmark; together ten minutes at most. Those of the CPU are for two cores.
CPU_LIMITS = {
    "attention": 30,
    "folded_vs_literal": 30,
    "refresh_cost": 45,
    "precomputed_units": 45,
    "cost_per_token": 60,
    "serve": 80,
    "feedback": 120,
    "decode_throughput": 190,
}
GPU_LIMITS = {
    "attention": 80,
    "decode_throughput": 170,
    "launches": 30,
    "refresh_cost": 40,
    "precomputed_units": 40,
    "small_weights": 40,
    "feedback": 60,
    "checked_throughput": 60,
    "serve": 80,
}


def run(name: str, options: list[str], device: str, keep: bool, limit: int | None) -> bool:
    """Runs one benchmark, which prints and keeps its own figures; whether it came to its end in time (seconds)."""
    print(f"== {name}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--device", device, *options]
    if keep:
        command += ["--out", str(ROOT / "benchmarks" / "results" / f"{name}-{device}.json")]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:  # noqa: S603
        try:
            return process.wait(limit) == 0
        except BaseException as error:
            # With all that it has started; nothing that hangs on a device heeds anything milder.
            os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            print(f"-- {name} was ended after {limit} s", flush=True)
            return False


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="on a CPU: every benchmark, without limits")


def main() -> None:
    """Runs them all."""
    arguments = parse_arguments(__doc__, _add_options)
    options = ["--repeats", str(arguments.repeats), *(["--smoke"] if arguments.smoke else [])]
    on_gpu = arguments.device.startswith("cuda")
    limits: dict[str, int | None] = {**(GPU_LIMITS if on_gpu else CPU_LIMITS)}
    if arguments.all and not on_gpu:
        limits = dict.fromkeys(BENCHMARKS)
    failed = [
        name for name, limit in limits.items() if not run(name, options, arguments.device, not arguments.smoke, limit)
    ]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
