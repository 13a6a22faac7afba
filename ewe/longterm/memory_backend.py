"""What a place of memories must answer, in this process or over HTTP."""

from collections.abc import Sequence
from typing import Protocol

from ewe.longterm.recall import Recall
from ewe.longterm.records import Memory, MemorySource, Revision, Scope
from ewe.longterm.store import Change
from ewe.longterm.superseded import Superseded, Why


class MemoryBackend(Protocol):
    """Where the memories lie: what `ewe.Memory` asks for, by scope and in seconds since 1970."""

    def add(self, memories: Sequence[Memory]) -> list[Memory]:
        """Remembers them in order; of each the memory that says the same words already, if there is one."""

    def find(self, scope: Scope, memory_id: str, as_of: float | None) -> Memory | None:
        """A memory as it is, or was; None if there is none, or it did not hold then."""

    def search(self, query: str, scope: Scope, top_k: int, threshold: float | None, as_of: float | None) -> Recall:
        """What the scope sees for a query."""

    def page(self, scope: Scope, offset: int, limit: int, as_of: float | None) -> list[Memory]:
        """Memories that the scope sees, as they were added."""

    def history(self, scope: Scope, memory_id: str) -> list[Revision]:
        """All changes of a memory, the first first."""

    def edit(self, scope: Scope, memory_id: str, change: Change) -> Memory:
        """Changes what a memory says, its metadata, or when it holds."""

    def correct(self, scope: Scope, memory_id: str, content: str, by: MemorySource) -> Memory:
        """Rewrites a source's own word; beside another one's it puts what should have been said."""

    def feedback(self, scope: Scope, memory_id: str, correct: bool, by: MemorySource) -> Memory:
        """Somebody says that a memory is right or wrong; the memory after it."""

    def why(self, scope: Scope, memory_id: str) -> Why:
        """Why a memory is there and believed as it is."""

    def superseded(self, scope: Scope) -> list[Superseded]:
        """The memories of the scope whose place others have taken, as they were added."""

    def restore(self, scope: Scope, memory_id: str) -> Memory:
        """Has a memory that ended, or is contradicted, hold again; any other says what it said before its edit."""

    def delete(self, scope: Scope, memory_id: str | None, scrub: bool) -> int:
        """Deletes a memory, or with None all of the scope; how many there were."""

    def close(self) -> None:
        """Ends what was begun."""
