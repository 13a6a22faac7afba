"""An answer as running text while it is written, with what may still be taken back behind it (docs/streaming.md)."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ewe.cli.terminal import clean


class DraftText:
    """Follows a stream's drafts, rewinds, checks, retrievals and the steps of its policy."""

    def __init__(self) -> None:
        self.text = ""
        self._checking: dict[int, Mapping[str, Any]] = {}
        self._doing = ""

    def handle(self, kind: str, data: Mapping[str, Any]) -> None:
        """Takes one event in; other kinds are passed over."""
        if kind == "draft":
            self.text, self._doing = self.text[: data["start"]] + data["text"], ""
        elif kind == "rewind":
            self.text, self._checking, self._doing = self.text[: data["kept_chars"]], {}, ""
        elif kind == "reasoning":
            self._doing = "reasoning"
        elif kind == "checking":
            self._checking[data["start"]] = data
        elif kind in ("verification", "sentence"):
            self._checking.pop(data["start"], None)
        elif kind in ("retrieving", "retrieval"):
            self._doing = "looking for passages" if kind == "retrieving" else ""
        elif kind in ("asking", "answered"):
            self._doing = f"asking the model: {data['step']}" if kind == "asking" else ""

    @property
    def status(self) -> str:
        """What the text waits for, in words; empty while it is just written."""
        numbers = [str(check["number"]) for check in self._checking.values()]
        if numbers:
            return f"checking sentence{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        return self._doing

    def rendered(self, position: int) -> Text:
        """The text from a code point on."""
        result = Text(style="dim italic")
        for check in self._checking.values():
            if check["start"] >= position:
                result.append(clean(self.text[position : check["start"]]))
                result.append(clean(self.text[check["start"] : check["end"]]), "underline").append(" ⋯", "bold")
                position = check["end"]
        return result.append(clean(self.text[position:]))


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

    def __enter__(self) -> Self:
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
        provisional = self._draft.rendered(self._position)
        blanks = len(provisional.plain) - len(provisional.plain.lstrip())
        text.append(" " if text and not blanks else "").append_text(provisional if text else provisional[blanks:])
        status = Text(self._draft.status, style="bright_black")
        return Group(text, status) if status else text
