"""An answer as running text while it is written: final text only, each sentence in the colour of its verdict.

Owns: the drawing of "text" and "sentence" events. Knows the event kinds (docs/trace.md), not the engine.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from ewe.cli.terminal import clean, mark, verdict_text
from ewe.types import Verdict


class TextView:
    """Prints text as it becomes final; into a pipe or a file exactly as it is, without marks."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.position = self.column = 0
        self.sentences: list[tuple[int, int, Any]] = []

    def handle(self, kind: str, data: dict[str, Any]) -> None:
        """Draws one event; kinds that this view does not show are passed over."""
        if kind == "sentence":
            self.sentences.append((data["start"], data["end"], data["verdict"]))
        elif kind == "text":
            self._print(data["text"])
        elif kind == "finish":
            print(flush=True)

    def _print(self, text: str) -> None:
        start, self.position = self.position, self.position + len(text)
        if not self.console.is_terminal:
            print(text, end="", flush=True)
            return
        line, place = Text(), start
        for first, last, verdict in self.sentences:
            if not (start <= first < last <= self.position):
                continue
            line.append(clean(text[place - start : first - start]))
            line.append_text(verdict_text(text[first - start : last - start], verdict))
            if Verdict(verdict) is not Verdict.NOT_CHECKED:
                line.append(" ").append_text(mark(verdict))
            place = last
        line.append(clean(text[place - start :]))
        self._wrap(line)

    def _wrap(self, line: Text) -> None:
        """Prints at the cursor and breaks lines between words; what stands in the line already counts as a filler."""
        filler = Text("x" * self.column, end="").append_text(line)
        lines = list(filler.wrap(self.console, self.console.width))
        lines[0] = lines[0][self.column :]
        self.column = lines[-1].cell_len + (self.column if len(lines) == 1 else 0)
        self.console.print(Text("\n").join(lines), end="", soft_wrap=True)
