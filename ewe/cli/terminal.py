"""How results look in a terminal: verdict marks and colours, clean text, the table at the end.

Text from models and passages is never read as markup, and its control characters never reach the terminal.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ewe.engine.answer_text.stream_events import StreamEvent
from ewe.errors import EWEError
from ewe.text.words import counted
from ewe.types import Generation, Sentence, Verdict

MARKS = {
    Verdict.SUPPORTED: ("✓", "green"),
    Verdict.REFUTED: ("✗", "red"),
    Verdict.INCONCLUSIVE: ("?", "yellow"),
    Verdict.NOT_CHECKED: ("–", "bright_black"),
}
INTERRUPTED = 130
"""The exit status after Ctrl-C."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: object) -> str:
    """`text` without control characters (escape sequences, text direction), which could steer the terminal."""
    return _CONTROL.sub("�", str(text).replace("\r\n", "\n"))


def say(message: str) -> None:
    """One line for the user on standard error."""
    print(f"ewe: {message}", file=sys.stderr)


def progress_bar(*columns: ProgressColumn, is_shown: bool = True) -> Progress:
    """A bar on standard error, if that is a terminal; it leaves nothing behind. columns: beside the
    description; none: the count and the time that remains.

    Standard output is left alone: rich would send it to standard error, away from a pipe or a file.
    """
    console = Console(stderr=True)
    shown = (TextColumn("{task.description}"), BarColumn(), *(columns or (MofNCompleteColumn(), TimeRemainingColumn())))
    disable = not (console.is_terminal and is_shown)
    return Progress(*shown, console=console, disable=disable, transient=True, redirect_stdout=False)


def print_facts(facts: Mapping[str, Any]) -> None:
    """One fact per line; a group in one line, a list with an entry per line."""
    for name, value in facts.items():
        shown = value
        if isinstance(value, dict):
            shown = ", ".join(f"{clean(key)} {inner}" for key, inner in value.items())
        elif isinstance(value, list):
            shown = "".join(f"\n  {clean(entry)}" for entry in value)
        print(f"{name.replace('_', ' ')}: {'none' if shown in (None, '') else shown}")


def output_console() -> Console:
    """The console on standard output; wide lines wrap at the terminal's edge, or at 100 columns without one."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=100)


def mark(verdict: Any) -> Text:
    """The sign of a verdict, which also tells it without colour."""
    sign, colour = MARKS[Verdict(verdict)]
    return Text(sign, style=f"bold {colour}")


def verdict_text(text: object, verdict: Any) -> Text:
    """A text in the colour of its verdict."""
    chosen = Verdict(verdict)
    return Text(clean(text), style="" if chosen is Verdict.NOT_CHECKED else MARKS[chosen][1])


def answer_text(generation: Generation) -> Text:
    """The whole answer as running text, each sentence in its colour and with its mark."""
    result, position = Text(), 0
    for sentence in generation.sentences:
        result.append(clean(generation.text[position : sentence.start]))
        result.append_text(verdict_text(generation.text[sentence.start : sentence.end], sentence.verdict))
        result.append(" ").append_text(mark(sentence.verdict))
        position = sentence.end
    return result.append(clean(generation.text[position:]))


def stats_table(generation: Generation) -> Table:
    """The table at the end of a run."""
    stats = generation.stats
    loaded = f"{stats.units_loaded} units loaded, " if stats.units_loaded else ""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bright_black")
    table.add_column()
    rate = f", {stats.tokens_kept / stats.total_s:.0f} tokens/s" if stats.total_s > 0 else ""
    rows = [
        ("sentences", f"{stats.sentences}" + _verdicts(generation.sentences)),
        ("rewrites", f"{stats.rewrites}"),
        ("memory refreshes", f"{stats.refreshes} ({loaded}{stats.unit_tokens_encoded} tokens encoded)"),
        ("tokens", f"{stats.tokens_kept} kept, {stats.tokens_discarded} discarded"),
        ("time", f"{stats.total_s:.2f} s" + rate),
        ("  decode", f"{stats.decode_s:.2f} s"),
        ("  retrieval", f"{stats.retrieval_wait_s:.2f} s waited, {stats.retrievals} times"),
        ("  verification", f"{stats.verification_wait_s:.2f} s waited, {stats.verifications} times"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


def summary(generation: Generation) -> str:
    """What checking made of an answer, in a line; empty if nothing was checked."""
    sentences, rewrites = generation.sentences, generation.stats.rewrites
    if all(sentence.verdict is Verdict.NOT_CHECKED for sentence in sentences) and not rewrites:
        return ""
    again = f", {counted(rewrites, 'rewrite')}" if rewrites else ""
    return f"{counted(len(sentences), 'sentence')}{_verdicts(sentences)}{again}"


def _verdicts(sentences: tuple[Sentence, ...]) -> str:
    listed = listed_verdicts(Counter(sentence.verdict for sentence in sentences))
    return f" ({listed})" if listed else ""


def listed_verdicts(counts: Mapping[Verdict, int]) -> str:
    """ "3 supported, 1 not checked"; verdicts that are none are left out."""
    return ", ".join(f"{counts[verdict]} {verdict.value.replace('_', ' ')}" for verdict in MARKS if counts[verdict])


class View(Protocol):
    """Draws the events of a stream."""

    def handle(self, kind: str, data: Any) -> None:
        """Draws one event."""


def follow(events: Iterable[StreamEvent], view: View | None) -> Generation:
    """Draws a stream and returns what it ends with. Raises EWEError if the generation failed, or if there is none."""
    for event in events:
        if view is not None:
            view.handle(event.kind, event.data)
        if event.generation is not None:
            generation: Generation = event.generation
            if generation.finish_reason == "error":
                raise EWEError(generation.error or "the generation failed")
            return generation
    raise EWEError("the stream ended without a result")
