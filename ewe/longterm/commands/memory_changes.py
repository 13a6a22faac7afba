"""`ewe memory superseded`, `why` and `restore`: what has changed, on what grounds, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ewe.cli.terminal import clean
from ewe.config.setting_names import NONE
from ewe.longterm.commands.memory_options import MemoryPlace, OneJSON, Owner

if TYPE_CHECKING:
    from ewe.longterm.superseded import Superseded

_MemoryId = Annotated[str, typer.Argument(metavar="ID", help="The memory's id.", show_default=False)]


def superseded(store: MemoryPlace, owner: Owner, as_json: OneJSON = False) -> None:
    """List the memories that newer ones have superseded; none is ever deleted by that."""
    from ewe.longterm.store import MemoryStore
    from ewe.longterm.superseded import superseded as superseded_of

    with MemoryStore.open(store, read_only=True) as opened, opened.snapshot():
        ended = superseded_of(opened, [owner.scope])
    _show(ended, as_json)
    if not ended and not as_json:
        print("nothing was superseded")


def why(store: MemoryPlace, memory_id: _MemoryId, owner: Owner, as_json: OneJSON = False) -> None:
    """Explain where a memory comes from, its belief, and what superseded it."""
    from ewe.longterm.store import MemoryStore
    from ewe.longterm.superseded import why as why_of

    with MemoryStore.open(store, read_only=True) as opened, opened.snapshot():
        reasons = why_of(opened, owner.scope, memory_id)
    if as_json:
        print(json.dumps(asdict(reasons) | {"text": str(reasons)}, ensure_ascii=False))
        return
    print("\n".join(map(clean, str(reasons).splitlines())))


def restore(store: MemoryPlace, memory_id: _MemoryId, owner: Owner) -> None:
    """Restore a superseded or contradicted memory; of any other, undo the last edit."""
    from ewe.longterm.default_memory import default_memory
    from ewe.longterm.store import MemoryStore

    with MemoryStore.open(store, read_only=False) as opened:
        service = default_memory(opened, encoder=NONE)
        memory = service.restore(owner.scope, memory_id, by="ewe memory restore")
    print(f"{clean(memory.id)} holds again: {clean(memory.content)}")


def _show(ended: list[Superseded], as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(one) | {"text": one.text} for one in ended], ensure_ascii=False))
        return
    for one in ended:
        print(f"{clean(one.memory.content)}\n   {clean(one.memory.id)}, {clean(one.text)}")
