"""`ewe memory review`: memories checked again by trusted passages.

Owns: the subcommand and its options. Knows the service of long-term memory and what opens retriever and judge.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ewe.longterm.service import MemoryService
    from ewe.longterm.store import MemoryStore


def review(
    store: Annotated[Path, typer.Argument(help="The folder of the memories.", metavar="DIR", show_default=False)],
    datastore: Annotated[
        Path,
        typer.Option(help="Trusted passages: a folder of `ewe index build`, or a .jsonl file.", show_default=False),
    ],
    budget: Annotated[int, typer.Option(min=1, help="Most memories to check.")] = 20,
    user: Annotated[str, typer.Option(help="Whose memories; nobody's in particular without it.")] = "",
    agent: Annotated[str, typer.Option(help="With which agent; any without it.")] = "",
    everybody: Annotated[bool, typer.Option("--all", help="The memories of all users and agents.")] = False,
    judge: Annotated[str, typer.Option(help="builtin, values, a folder or hub id, or openai:MODEL@URL.")] = "builtin",
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Check the memories that need it most (old, doubtful, often used) by trusted passages, and move their veracity."""
    import json

    from ewe.cli.terminal import clean
    from ewe.longterm.records import Scope
    from ewe.longterm.store import MemoryStore

    with MemoryStore.open(store, read_only=False) as opened:
        service = _service(opened, datastore, judge)
        revisions = service.review(budget, None if everybody else [Scope(user, agent)])
    if as_json:
        print(json.dumps([asdict(revision) for revision in revisions], ensure_ascii=False))
        return
    for revision in revisions:
        change = f"veracity {revision.veracity_before:.2f} -> {revision.veracity_after:.2f}"
        print(f"{clean(revision.memory_id)}: {change}")
        for evidence in revision.evidence:
            print(f"  evidence: {clean(evidence)}")
    print(f"{len(revisions)} memories reviewed")


def _service(store: MemoryStore, datastore: Path, judge: str) -> MemoryService:
    from ewe.cli.index_report import indexing
    from ewe.longterm.service import MemoryService
    from ewe.retrieval.open import open_retriever
    from ewe.verification.judges.load import load_judge

    with indexing() as show:
        trusted = open_retriever(datastore, progress=show)
    return MemoryService(store, judge=load_judge(judge), trusted=trusted)
