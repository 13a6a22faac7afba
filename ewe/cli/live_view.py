"""A run as it happens: the draft in a live region, finished sentences and withdrawn ones above it.

Without a terminal the live region is left out and the same lines are printed as they become final.
"""

from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ewe.cli.terminal import clean, mark, verdict_text
from ewe.cli.text_view import DraftText
from ewe.text.words import counted
from ewe.types import Verdict

_MOST_PROOFS = 2


class LiveView:
    """Draws stream events; a context manager, because the live region must be closed."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.draft = DraftText()
        self.done = 0
        self.memory: dict[str, list[int]] = {}
        self.titles: dict[int, str] = {}
        self.check: dict[str, Any] = {}
        live = console.is_terminal and not console.is_dumb_terminal
        self.live = Live(console=console, refresh_per_second=20, transient=True) if live else None

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live:
            self.live.update("")
            self.live.stop()

    def handle(self, kind: str, data: dict[str, Any]) -> None:
        """Draws one event; kinds that this view does not show are passed over."""
        self.draft.handle(kind, data)
        if kind == "verification":
            self.check = data
        elif kind in ("refresh", "restore", "evict"):
            self._remember(kind, data)
        elif kind == "rewind":
            self._withdraw(data)
        elif kind == "sentence":
            self._finish(data)
        if self.live:
            self.live.update(self._provisional())

    def _remember(self, kind: str, data: dict[str, Any]) -> None:
        unit = data["unit_id"]
        if kind == "refresh":
            self.titles[unit] = data["passage"].get("title") or data["passage"]["id"]
        held = [other for other in self.memory.get(data["lane"], []) if other != unit]
        self.memory[data["lane"]] = held if kind == "evict" else [*held, unit]

    def _finish(self, data: dict[str, Any]) -> None:
        if "\n\n" in self.draft.text[self.done : data["start"]]:
            self.console.print()  # a new paragraph
        line = verdict_text(data["text"], data["verdict"])
        if note := _history(data):
            line.append(f"  ({note})", style="bright_black")
        self.console.print(_line(mark(data["verdict"]), line))
        self.done = data["end"]

    def _withdraw(self, data: dict[str, Any]) -> None:
        refuted = data.get("reason") != "unsure"
        line = Text(clean(data["text"]).strip(), style="strike red" if refuted else "strike")
        if data.get("reason") == "drop":
            line = Text.assemble(line, ("  (left out)", "bright_black"))
        self.console.print(_line(mark(Verdict.REFUTED) if refuted else Text("↺"), line))
        if self.check.get("start") == data["start"]:
            for proof in _proofs(self.check.get("evidence", ())):
                line = Text(clean(proof.get("title") or proof["id"]), style="cyan")
                if proof.get("source"):
                    line.append(f" ({clean(proof['source'])})", style="bright_black")
                if proof.get("excerpt"):
                    line.append(f": “{clean(proof['excerpt'])}”", style="default")
                self.console.print(Padding(_line(Text("↳", style="bright_black"), line), (0, 0, 0, 4)))
        self.done = min(self.done, len(self.draft.text))

    def _provisional(self) -> RenderableType:
        rest = self.draft.text[self.done :]
        provisional = self.draft.rendered(self.done + len(rest) - len(rest.lstrip()))
        lanes = Text(style="bright_black")
        for lane, units in self.memory.items():
            names = ", ".join(clean(self.titles.get(unit, unit)) for unit in units)
            lanes.append(f"{'   ' if lanes else ''}{lane}: ", style="bold").append(names or "empty")
        lanes.truncate(max(self.console.width - 1, 10), overflow="ellipsis")
        return Group(_line(Text("…", style="dim"), provisional), Text(self.draft.status, style="bright_black"), lanes)


def _history(data: dict[str, Any]) -> str:
    attempts = data.get("attempts", 1)
    if data.get("quotes"):
        return f"quoted from {clean(data['quotes'])}"
    if data["verdict"] == Verdict.REFUTED:
        return f"kept, though refuted, after {counted(attempts, 'attempt')}"
    if not data.get("removed"):
        return ""
    return "rewritten" if attempts == 2 else f"rewritten {attempts - 1} times"


def _proofs(evidence: Any) -> list[dict[str, Any]]:
    """The evidence to show for a withdrawn sentence: what speaks against it, else whatever was found; one per title."""
    against = [item for item in evidence if item.get("stance") == Verdict.REFUTED]
    by_title: dict[Any, dict[str, Any]] = {}
    for item in against or list(evidence):
        by_title.setdefault(item.get("title") or item["id"], item)
    return list(by_title.values())[:_MOST_PROOFS]


def _line(sign: Text, text: Text) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=1)
    grid.add_column(overflow="fold")
    grid.add_row(sign, text)
    return grid
