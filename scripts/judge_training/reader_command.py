"""The command line of the scripts that train small readers from the built-in judge."""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def reader_parser(description: str | None, run: str) -> argparse.ArgumentParser:
    """What all of them may be told; run: the name of the run's folder."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--lr", type=float, default=1.5e-4, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--run-dir", type=Path, default=ROOT / "runs" / run)
    parser.add_argument("--export", action="store_true", help="write the file of this run, no training")
    return parser


def export_run(run_dir: Path, model: Path) -> None:
    """Puts what a run wrote last into the package's folder of the model."""
    model.mkdir(exist_ok=True)
    (model / "reader.safetensors").write_bytes((run_dir / "reader.safetensors").read_bytes())
