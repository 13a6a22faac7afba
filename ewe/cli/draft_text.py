"""Text that may still be taken back, as a terminal shows it: dim, with a sign behind what is being checked.

Owns: the text of the moment and what is under way. Knows the event kinds (docs/streaming.md), not the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
            self.text = self.text[: data["start"]] + data["text"]
        elif kind == "rewind":
            self.text, self._checking, self._doing = self.text[: data["kept_chars"]], {}, ""
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
