"""Draws docs/demo.svg from a real run of `ewe demo`.

Run by hand after the built-in model or the demo has changed: `python scripts/draw_demo.py [seed]`. Owns: the picture.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI

from ewe.cli import terminal
from ewe.cli.demo import demo

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "demo.svg"
_MAX_TOKENS = 128
_WEB_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main(seed: int) -> None:
    """Runs the demo into a recording console and saves what it shows."""
    console = Console(record=True, width=100, highlight=False)
    terminal.output_console = lambda: console
    demo(seed=seed, max_tokens=_MAX_TOKENS)
    picture = console.export_svg(title=f"ewe demo --seed {seed} --max-tokens {_MAX_TOKENS}", theme=DIMMED_MONOKAI)
    PICTURE.write_text(_WEB_FONTS.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
