"""Memories whose place others have taken: listed, explained, and brought back."""

from collections.abc import Sequence
from dataclasses import dataclass

from ewe.errors import InvalidRequestError
from ewe.longterm.evidence import Clock
from ewe.longterm.memory_search import day_of, visible
from ewe.longterm.records import Memory, Revision, Scope
from ewe.longterm.store import Change, MemoryStore

SUPERSEDED, RESTORED = "superseded", "restored"


@dataclass(frozen=True, slots=True)
class Superseded:
    """A memory that holds no more, when its place was taken (seconds since 1970), and by what.

    by: the memory that took it; None if it has been deleted.
    """

    memory: Memory
    at: float
    by: Memory | None

    @property
    def text(self) -> str:
        """One line for people: until when it held, and why."""
        at = self.at if self.memory.valid_until is None else self.memory.valid_until
        until = day_of(at) or f"{at:g} s"
        by = f": {self.by.content}" if self.by is not None else ", by a memory that was deleted since"
        return f"held until {until}{by}"


@dataclass(frozen=True, slots=True)
class Why:
    """Why a memory is there and believed as it is; printed, it says so in words.

    said: the words that it was taken from, empty where they are its own. ended: what took its place, None if nothing
    did. supersedes, contradicts: the other memories, as far as its owner sees them and they have not been deleted.
    """

    memory: Memory
    said: str
    history: tuple[Revision, ...]
    ended: Superseded | None
    supersedes: tuple[Memory, ...]
    contradicts: tuple[Memory, ...]

    def __str__(self) -> str:
        memory = self.memory
        belief = f"veracity {memory.veracity:.2f}, uncertainty {memory.uncertainty:.2f}"
        lines = [memory.content, f"  from {memory.source.name}, {belief}"]
        lines += [f"  said: {self.said}"] if self.said else []
        lines.append(f"  {self.ended.text}" if self.ended is not None else "  nothing took its place")
        others = {"replaces": self.supersedes, "contradicts": self.contradicts}
        lines += [f"  {word}: {other.content}" for word, memories in others.items() for other in memories]
        for one in self.history:
            evidence = f" ({', '.join(one.evidence)})" if one.evidence else ""
            lines.append(f"  {one.reason}: veracity {one.veracity_before:.2f} -> {one.veracity_after:.2f}{evidence}")
        return "\n".join(lines)


def superseded(store: MemoryStore, scopes: Sequence[Scope]) -> list[Superseded]:
    """The memories of these scopes whose place others have taken, as they were added."""
    ended = (one for one in store.scan(scopes) if one.valid_until is not None)
    changes = (_ended(store, one, store.history(one.scope, one.id)) for one in ended)
    return [one for one in changes if one is not None]


def why(store: MemoryStore, scope: Scope, memory_id: str) -> Why:
    """Why a memory is as it is. Raises InvalidRequestError if the scope holds no such memory."""
    memory, history = store.get(scope, memory_id), store.history(scope, memory_id)
    supersedes, contradicts = (_others(store, scope, ids) for ids in (memory.supersedes, memory.contradicts))
    source_text = str(memory.metadata.get("said", ""))
    return Why(memory, source_text, tuple(history), _ended(store, memory, history), supersedes, contradicts)


def restore(store: MemoryStore, clock: Clock, scope: Scope, memory_id: str, by: str = "") -> Memory:
    """Has a memory that ended, or that is marked as contradicted, hold again.

    What took its place stays, and supersedes it no longer. by: who says so, for its history. Raises InvalidRequestError
    if the scope holds no such memory.
    """
    with store.transaction():
        memory = store.get(scope, memory_id)
        ended = _ended(store, memory, store.history(scope, memory_id))
        if ended is not None and ended.by is not None:
            others = tuple(one for one in ended.by.supersedes if one != memory_id)
            stays = Change(supersedes=others)
            store.revise(scope, ended.by.id, stays, at=clock(), reason="stays beside", evidence=[memory_id])
        valid = (memory.valid_from, None) if memory.valid_until is not None else None
        change = Change(valid=valid, contradicts=())
        store.revise(scope, memory_id, change, at=clock(), reason=RESTORED, evidence=[by] if by else [])
        return store.get(scope, memory_id)


def former_words(store: MemoryStore, scope: Scope, memory_id: str) -> str:
    """What a memory said before it was last rewritten. Raises InvalidRequestError if it never was, or is not there."""
    texts = [one.content_before for one in store.history(scope, memory_id) if one.content_before]
    if not texts:
        raise InvalidRequestError(
            f"memory {memory_id!r} holds as it is, uncontradicted, and was never rewritten: nothing to restore"
        )
    return texts[-1]


def _others(store: MemoryStore, scope: Scope, ids: Sequence[str]) -> tuple[Memory, ...]:
    """The memories of ids, in the scope itself or elsewhere in its owner's sight."""
    scopes = visible(scope.user, scope.agent)
    others = (next(filter(None, (store.find(one, other) for one in (scope, *scopes))), None) for other in ids)
    return tuple(one for one in others if one is not None)


def _ended(store: MemoryStore, memory: Memory, history: Sequence[Revision]) -> Superseded | None:
    """What took a memory's place; None if nothing did."""
    last = next((one for one in reversed(history) if one.reason in (SUPERSEDED, RESTORED)), None)
    if memory.valid_until is None or last is None or last.reason != SUPERSEDED:
        return None
    by = store.find(memory.scope, last.evidence[0]) if last.evidence else None
    return Superseded(memory, last.at, by)
