"""`ewe memory review`: memories checked again by trusted passages, once or again and again."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from ewe.cli.index_report import indexing
from ewe.cli.terminal import clean, output_console, say
from ewe.config import RetrievalConfig
from ewe.config.setting_names import NONE
from ewe.errors import DatastoreError
from ewe.longterm.commands.memory_options import Everybody, JudgeName, MemoryPlace, Owner
from ewe.longterm.records import Scope
from ewe.open_datastore import open_datastore
from ewe.text.words import counted

if TYPE_CHECKING:
    from ewe.longterm.reviews import Outlook, Reviewed
    from ewe.longterm.service import MemoryService
    from ewe.longterm.store import MemoryStore

_SEEN = 0.005  # A smaller change cannot be seen in what is printed.
_LONGEST = 60  # characters of a memory in the table
_sleep = time.sleep


def review(
    *,
    store: MemoryPlace,
    datastore: Annotated[
        str,
        typer.Option(
            help="Trusted passages: a folder of `ewe index build`, a .jsonl file, or builtin.", show_default=False
        ),
    ],
    budget: Annotated[int, typer.Option(min=1, help="Maximum number of memories to check in one round.")] = 20,
    every: Annotated[
        float | None,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="Repeat after this interval until interrupted; the store is released in between.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also check memories that are not due yet.")] = False,
    owner: Owner,
    everybody: Everybody = False,
    judge: JudgeName = "builtin",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one document per round.")] = False,
) -> None:
    """Check the memories that need it most (old, doubtful, often used) by trusted passages, and move their veracity.

    Exit code 1 if a memory could not be checked.
    """
    from ewe.longterm.store import MemoryStore

    scopes = None if everybody else [owner.scope]
    open_service = _parts(store, datastore, judge, force)
    while True:
        reviewed: list[Reviewed] = []
        outlook: Outlook | None = None
        try:
            with MemoryStore.open(store, read_only=False) as opened:
                outlook = _round(open_service(opened), budget, scopes, reviewed)
        except DatastoreError as error:
            if every is None:
                raise
            say(str(error))
        finally:
            _show(reviewed, outlook, everybody, as_json)  # what was checked before an interruption stays checked
        if every is None:
            raise typer.Exit(int(any(one.error for one in reviewed)))
        _sleep(every)


def _parts(store: str, datastore: str, judge: str, force: bool) -> Callable[[MemoryStore], MemoryService]:
    """What makes a service of an open store; passages and judge are loaded once, after a look whether a store is there.

    Raises DatastoreError for a folder without memories, before anything takes time.
    """
    from ewe.longterm.default_memory import default_memory, default_rules
    from ewe.longterm.reviews import ReviewPolicy
    from ewe.longterm.store import MemoryStore
    from ewe.verification.judges.load import load_judge

    MemoryStore.open(store).close()
    with indexing() as show:
        trusted, _ = open_datastore(
            datastore, RetrievalConfig(), lambda step: step.total and show(step.done, step.total)
        )
    if trusted is None:
        raise DatastoreError("memories are reviewed by the passages of a datastore: name one")
    loaded = load_judge(judge)
    rules = replace(default_rules(), reviews=ReviewPolicy(least=0.0)) if force else None
    return lambda opened: default_memory(opened, judge=loaded, trusted=trusted, encoder=NONE, rules=rules)


def _round(
    service: MemoryService, budget: int, scopes: Sequence[Scope] | None, reviewed: list[Reviewed]
) -> Outlook | None:
    """Checks what is due, into `reviewed`; where nothing is, how many memories there are and when one will be."""
    reviewer = service.reviewer()
    due = reviewer.plan(budget, scopes)
    with indexing("reviewing") as show:
        show(0, len(due))
        for one in reviewer.round(due):
            reviewed.append(one)
            show(len(reviewed), len(due))
    return None if due else reviewer.outlook(scopes)


def _outcome(one: Reviewed) -> str:
    if one.error:
        return "failed"
    if one.revision is None:
        return "gone or rewritten meanwhile"
    change = one.revision.veracity_after - one.revision.veracity_before
    if abs(change) < _SEEN:
        return "unchanged"
    return "believed more" if change > 0 else "believed less"


def _show(reviewed: Sequence[Reviewed], outlook: Outlook | None, everybody: bool, as_json: bool) -> None:
    counts = Counter(map(_outcome, reviewed))
    if as_json:
        report = {"reviewed": [_json(one) for one in reviewed], "counts": counts}
        print(json.dumps(report | _outlook_json(outlook), ensure_ascii=False))
        return
    if reviewed:
        _table(reviewed)
    summary = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    summary = summary or (_why_none(outlook, everybody) if outlook else "")
    print(counted(len(reviewed), "memory", "memories") + " reviewed" + (f": {summary}" if summary else ""))


def _why_none(outlook: Outlook, everybody: bool) -> str:
    if not outlook.memories:
        return "there are none" + ("" if everybody else " of this user and agent (--all takes everybody's)")
    number = "the only memory is not due" if outlook.memories == 1 else f"none of {outlook.memories:,} memories is due"
    when = ""
    if math.isfinite(outlook.next_due_at):
        when = f" before {datetime.fromtimestamp(outlook.next_due_at, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{number}{when} (--force checks them now)"


def _outlook_json(outlook: Outlook | None) -> dict[str, Any]:
    """Only where nothing was due: how many memories there are, and when the next one is due, in unix seconds."""
    if outlook is None:
        return {}
    is_known = math.isfinite(outlook.next_due_at)
    return {"memories": outlook.memories, "next_due_at": outlook.next_due_at if is_known else None}


def _json(one: Reviewed) -> dict[str, Any]:
    return {
        "memory_id": one.memory.id,
        "scope": asdict(one.memory.scope),
        "content": one.memory.content,
        "outcome": _outcome(one),
        "revision": asdict(one.revision) if one.revision else None,
        "error": one.error,
    }


def _table(reviewed: Sequence[Reviewed]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black")
    for name in ("memory", "veracity", "uncertainty", "outcome", "evidence"):
        table.add_column(name, no_wrap=name in ("veracity", "uncertainty"), overflow="fold")
    for one in reviewed:
        revision, shown = one.revision, one.memory.content
        veracity = f"{one.memory.veracity:.2f}"
        uncertainty = f"{one.memory.uncertainty:.2f}"
        if revision is not None:
            veracity += f" -> {revision.veracity_after:.2f}"
            uncertainty += "" if revision.uncertainty is None else f" -> {revision.uncertainty:.2f}"
        evidence = one.error or (", ".join(revision.evidence) if revision else "")
        shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
        cells = (f"{shown} ({one.memory.id})", veracity, uncertainty, _outcome(one), evidence)
        table.add_row(*(Text(clean(cell)) for cell in cells))  # never read as markup
    output_console().print(table)
