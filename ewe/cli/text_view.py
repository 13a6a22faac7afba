"""An answer as running text while it is written: final text only.

Owns: the drawing of "text" events. Knows the event kinds (docs/trace.md), not the engine.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from ewe.cli.terminal import clean


class TextView:
    """Prints text as it becomes final; into a pipe or a file exactly as it is."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.column = 0

    def handle(self, kind: str, data: dict[str, Any]) -> None:
        """Draws one event; kinds that this view does not show are passed over."""
        if kind == "finish":
            print(flush=True)
        elif kind == "text" and self.console.is_terminal:
            self._wrap(Text(clean(data["text"])))
        elif kind == "text":
            print(data["text"], end="", flush=True)

    def _wrap(self, line: Text) -> None:
        """Prints at the cursor and breaks lines between words; what stands in the line already counts as a filler."""
        filler = Text("x" * self.column, end="").append_text(line)
        lines = list(filler.wrap(self.console, self.console.width))
        lines[0] = lines[0][self.column :]
        self.column = lines[-1].cell_len + (self.column if len(lines) == 1 else 0)
        self.console.print(Text("\n").join(lines), end="", soft_wrap=True)
