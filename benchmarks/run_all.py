"""Runs every benchmark, one after the other, each in a process of its own, and keeps their JSON documents.

The results go to benchmarks/results/<benchmark>-<cpu|cuda>.json; with --smoke nothing is kept. Exits with 1 if one
fails.
"""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.common import ROOT, parse_arguments

BENCHMARKS = (
    "attention",
    "folded_vs_literal",
    "refresh_cost",
    "cost_per_token",
    "decode_throughput",
    "verification_overhead",
    "server_overhead",
    "kept_context_staleness",
    "retrieval_recall",
    "longterm_store",
    "longterm_scoring",
    "retrieval_speed",
    "judge_quality",
    "judge_speed",
    "factscore_verdicts",
    "claims_factscore",
)


def run(name: str, options: list[str], device: str, keep: bool) -> bool:
    """Runs one benchmark and prints what it prints; keeps its last line as a file. Whether it succeeded."""
    print(f"== {name}", flush=True)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--device", device, *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    print(done.stdout, flush=True)
    if done.returncode != 0:
        return False
    document = json.loads(done.stdout.splitlines()[-1])
    if keep:
        path = ROOT / "benchmarks" / "results" / f"{name}-{device}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n")
    return True


def main() -> None:
    """Runs them all."""
    arguments = parse_arguments(__doc__)
    options = ["--repeats", str(arguments.repeats), *(["--smoke"] if arguments.smoke else [])]
    failed = [name for name in BENCHMARKS if not run(name, options, arguments.device, keep=not arguments.smoke)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
