"""An answer as running text in a terminal, with what may still be taken back behind it.

Owns: the live region below the lines that are full. Knows the event kinds (docs/streaming.md), not the engine.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ewe.cli.draft_text import DraftText
from ewe.cli.terminal import clean
from ewe.cli.text_view import TextView


def text_view(console: Console) -> AbstractContextManager[TextView]:
    """The view for running text: with drafts in a terminal that can take them back, else final text alone."""
    is_live = console.is_terminal and not console.is_dumb_terminal
    return LiveText(console) if is_live else nullcontext(TextView(console))


class LiveText(TextView):
    """Final text as TextView prints it; behind it the draft, dim, and the wording that was taken back, struck out.

    A context manager, because the live region must be closed. What stands remains on the screen, whatever happens.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.live = Live(console=console, refresh_per_second=20, transient=True)
        self._draft = DraftText()
        self._line = Text()
        self._withdrawn = ""
        self._position = 0  # code points of final text

    def __enter__(self) -> LiveText:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.update("")
        self.live.stop()
        self.console.print(self._line, soft_wrap=True)

    def handle(self, kind: str, data: dict[str, Any]) -> None:
        """Draws one event; kinds that this view does not show are passed over."""
        self._draft.handle(kind, data)
        if kind == "text":
            self._position += len(data["text"])
        if kind in ("rewind", "sentence"):
            is_rewritten = kind == "rewind" and data.get("reason") != "drop"
            self._withdrawn = data["text"] if is_rewritten else ""
        if kind != "finish":  # the end of the last line is left to `__exit__`
            super().handle(kind, data)
        self.live.update(self._tail())

    def _wrap(self, line: Text) -> None:
        """Prints the lines that are full above the live region; the last one is its beginning."""
        *full, self._line = self._line.append_text(line).wrap(self.console, self.console.width)
        for item in full:
            self.console.print(item, soft_wrap=True)

    def _tail(self) -> RenderableType:
        text = self._line.copy()
        if self._withdrawn:
            text.append(" " if text else "").append(clean(self._withdrawn).strip(), "strike red")
        draft = self._draft.rendered(self._position)
        blanks = len(draft.plain) - len(draft.plain.lstrip())
        text.append(" " if text and not blanks else "").append_text(draft if text else draft[blanks:])
        status = Text(self._draft.status, style="bright_black")
        return Group(text, status) if status else text
