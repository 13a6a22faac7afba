"""Draws docs/demo.svg from a run of `ewe demo`, and docs/demo-real.svg from one of `ewe demo --real`.

Run by hand after a model or the demo has changed: `python scripts/draw_demo.py [--real] [--seed N]`.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

from ewe.cli import terminal
from ewe.cli.demo import demo

DOCS = Path(__file__).resolve().parents[1] / "docs"
_MAX_TOKENS = 128
_WEB_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Runs the demo into a recording console and saves what it shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="a real model on Wikipedia's paragraphs")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console(record=True, width=100, highlight=False)
    terminal.output_console = lambda: console
    demo(seed=options.seed, real=options.real, max_tokens=_MAX_TOKENS)
    said = f"ewe demo{' --real' if options.real else ''} --seed {options.seed} --max-tokens {_MAX_TOKENS}"
    picture = console.export_svg(title=said, theme=DIMMED_MONOKAI)
    name = "demo-real.svg" if options.real else "demo.svg"
    (DOCS / name).write_text(_WEB_FONTS.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()
