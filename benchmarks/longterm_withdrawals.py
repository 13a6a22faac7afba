"""Memories that lose their place in LoCoMo's conversations: hardly anything changes there, so nearly all should stay.

Every conversation is told turn by turn, at the time of its session, as `ewe.Memory.add` does: whole turns, and the
facts that rules take from them, each to its speaker's own memory; and all turns of both speakers, with their names, to
one memory. withdrawn: another memory took its place, or it is marked as contradicted; whether that was right only
reading can say (--show prints each with what took its place). unrestorable: it does not hold again, in the words that
it had, after `restore`. Shares have the ends of their 95% intervals (Wilson).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, parse_arguments, report
from benchmarks.verdicts import shares
from ewe.longterm.evaluation.selective_sets import locomo_sessions
from ewe.longterm.memory_api import Memory
from ewe.longterm.records import MemorySource
from ewe.longterm.service import MemoryService
from ewe.longterm.store import MemoryStore

_RELIABILITY = 0.7  # of what a user says
_MADE_UP = {
    "session_1": [{"speaker": "Ann", "text": "I live in Porto."}, {"speaker": "Ben", "text": "I live in Bergen."}],
    "session_1_date_time": "1:00 pm on 1 May, 2023",
    "session_2": [{"speaker": "Ann", "text": "I moved to Rome in May."}],
    "session_2_date_time": "1:00 pm on 1 June, 2023",
}

Telling = Callable[[Memory, str, Mapping[str, Any], float], str]
"""Adds one turn of a conversation (its name, the turn, when it was said); the user whose memory holds it."""


def turns(memory: Memory, name: str, turn: Mapping[str, Any], at: float) -> str:
    """The whole turn, to its speaker's own memory."""
    return _told(memory, name, turn, at, infer=False)


def facts(memory: Memory, name: str, turn: Mapping[str, Any], at: float) -> str:
    """The facts that rules take from the turn, to its speaker's own memory."""
    return _told(memory, name, turn, at, infer=True)


def together(memory: Memory, name: str, turn: Mapping[str, Any], at: float) -> str:
    """The whole turn, with who says it, to one memory of the conversation."""
    source = MemorySource("user", turn["speaker"], _RELIABILITY)
    memory.of(name).add(f"{turn['speaker']}: {turn['text']}", kind="turn", source=source, observed_at=at)
    return name


def measure(conversations: Sequence[Mapping[str, Any]], tell: Telling, show: bool) -> dict[str, float]:
    """How many memories there are, and how many of them are withdrawn and cannot be restored."""
    counts = dict.fromkeys(("memories", "withdrawn", "unrestorable"), 0)
    with tempfile.TemporaryDirectory() as folder, MemoryStore.create(Path(folder) / "memories") as store:
        memory, users = Memory(MemoryService(store)), dict[str, None]()
        for number, conversation in enumerate(conversations):
            for at, said in locomo_sessions(conversation):
                users |= {tell(memory, f"conversation {number}", turn, at): None for turn in said if turn["text"]}
        for own in map(memory.of, users):
            held = own.get_all(limit=10_000)
            withdrawn = [one for one in held if one.valid_until is not None or one.contradicts]
            if show:
                print("\n".join(str(own.why(one.id)) for one in withdrawn), file=sys.stderr)
            counts["memories"] += len(held)
            counts["withdrawn"] += len(withdrawn)
            counts["unrestorable"] += sum(not is_restored(own, one.id) for one in withdrawn)
    return {
        **shares("withdrawn", counts["withdrawn"], counts["memories"]),
        "withdrawn, count": counts["withdrawn"],
        "unrestorable": counts["unrestorable"],
    }


def is_restored(memory: Memory, memory_id: str) -> bool:
    """Restores a memory; whether it then holds, uncontradicted, and says what it said."""
    before, after = memory.get(memory_id), memory.restore(memory_id)
    same = before is not None and before.content == after.content
    return same and after.valid_until is None and not after.contradicts


def _told(memory: Memory, name: str, turn: Mapping[str, Any], at: float, *, infer: bool) -> str:
    user = f"{name}, {turn['speaker']}"
    said = {"role": "user", "content": turn["text"], "name": turn["speaker"], "created_at": at}
    memory.of(user).add([said], infer=infer)
    return user


def read(path: Path) -> list[Mapping[str, Any]]:
    """All conversations of the set. Ends the program, saying why, where it is missing."""
    if not path.exists():
        sys.exit(f"{path} is missing: --data names the folder of the public sets (locomo)")
    return [row["conversation"] for row in json.loads(path.read_text(encoding="utf-8"))]


def main() -> None:
    """Runs the benchmark."""

    def add(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="the public sets")
        parser.add_argument("--show", action="store_true", help="print every withdrawn memory, and why")

    arguments = parse_arguments(__doc__, add)
    conversations = [_MADE_UP] if arguments.smoke else read(arguments.data / "locomo" / "conversations.json")
    ways = {"turns": turns, "facts": facts, "both speakers' turns in one memory": together}
    found = {name: measure(conversations, tell, arguments.show) for name, tell in ways.items()}
    figures = {f"{name}: {key}": value for name, row in found.items() for key, value in row.items()}
    report("longterm_withdrawals", arguments, {"conversations": len(conversations)}, figures)


if __name__ == "__main__":
    main()
