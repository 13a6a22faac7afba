"""A process that writes memories until it is killed: `python -m tests.unit.longterm_crash_child FOLDER SEED START`.

What its n-th step does follows from the seed and n alone, so that whoever killed it knows what has to be there.
"""

from __future__ import annotations

import random
import sys
from itertools import count
from pathlib import Path
from typing import Any

from ewe.longterm.records import Memory, Scope
from ewe.longterm.store import Change, MemoryStore
from tests.unit.longterm_parts import WordEncoder

SCOPES = (Scope("ann"), Scope("bob", "helper"), Scope())
State = dict[str, Any]  # "memories": id to (content, veracity, reasons of its revisions), "deleted": ids


def plan(seed: str, step: int) -> tuple[str, Scope, list[str], float]:
    """What a step does, where, to which ids, and a veracity."""
    draw = random.Random(f"{seed} {step}")
    what = draw.choice(["add", "add", "add", "revise", "rewrite", "delete", "embed"])
    place = draw.randrange(len(SCOPES))
    if what == "add":
        return what, SCOPES[place], [f"{step}-{i}-{place}" for i in range(draw.randrange(1, 6))], draw.random()
    at = draw.randrange(max(step, 1))
    return what, SCOPES[place], [f"{at}-{i}-{place}" for i in range(2)], draw.random()


def expected(state: State, seed: str, step: int) -> State:
    """The state after a step."""
    what, _, ids, veracity = plan(seed, step)
    memories, deleted = dict(state["memories"]), list(state["deleted"])
    present = [memory_id for memory_id in ids if memory_id in memories]
    if what == "add":
        memories |= {memory_id: (f"word{memory_id} tea", veracity, ["added"]) for memory_id in ids}
    elif what == "delete":
        deleted += present
        memories = {memory_id: values for memory_id, values in memories.items() if memory_id not in present}
    elif what != "embed":
        for memory_id in present:
            content, _, reasons = memories[memory_id]
            new = f"step{step}" if what == "rewrite" else content
            memories[memory_id] = (new, veracity, [*reasons, f"{what} {step}"])
    return {"memories": memories, "deleted": deleted}


def run(store: MemoryStore, seed: str, step: int) -> None:
    """Does a step, all of it or nothing."""
    what, scope, ids, veracity = plan(seed, step)
    if what == "add":
        store.add(Memory(memory_id, f"word{memory_id} tea", scope=scope, veracity=veracity) for memory_id in ids)
    elif what == "delete":
        store.delete(scope, ids, at=float(step), reason="asked")
    elif what == "embed":
        store.embeddings.embed(WordEncoder())
    else:
        change = Change(veracity=veracity, content=f"step{step}" if what == "rewrite" else None)
        with store.transaction():
            for memory_id in ids:
                if store.find(scope, memory_id) is not None:
                    store.revise(scope, memory_id, change, at=float(step), reason=f"{what} {step}")


def main(folder: Path, seed: str, start: int) -> None:
    """Step after step, each acknowledged by its number when it is done."""
    with MemoryStore.open(folder, read_only=False) as store:
        for step in count(start):
            run(store, seed, step)
            print(step, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
