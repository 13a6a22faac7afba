"""The memories of a service in this process, as `ewe.Memory` asks for them."""

import time
from collections.abc import Sequence

from ewe.longterm.memory_search import visible
from ewe.longterm.recall import Recall
from ewe.longterm.records import Memory, MemorySource, Revision, Scope
from ewe.longterm.service import MemoryService
from ewe.longterm.store import Change
from ewe.longterm.superseded import Superseded, Why


class LocalMemories:
    """A service and its store as a `MemoryBackend`; owns_store: `close` closes both."""

    def __init__(self, service: MemoryService, owns_store: bool = False) -> None:
        self._service, self._owns_store = service, owns_store

    def add(self, memories: Sequence[Memory]) -> list[Memory]:
        """Remembers them, or finds the same words."""
        return self._service.add_all(memories)

    def find(self, scope: Scope, memory_id: str, as_of: float | None) -> Memory | None:
        """The memory of this scope, as it is or was; None if there is none, or it did not hold then."""
        return self._service.get(scope, memory_id, as_of)

    def search(self, query: str, scope: Scope, top_k: int, threshold: float | None, as_of: float | None) -> Recall:
        """What is remembered for a query and may be used."""
        return self._service.search(query, visible(scope.user, scope.agent), top_k, threshold, as_of)

    def page(self, scope: Scope, offset: int, limit: int, as_of: float | None) -> list[Memory]:
        """Memories that the scope sees, as they were added."""
        return self._service.page(visible(scope.user, scope.agent), offset, limit, as_of)

    def history(self, scope: Scope, memory_id: str) -> list[Revision]:
        """All changes of a memory, the first first."""
        return self._service.store.history(scope, memory_id)

    def edit(self, scope: Scope, memory_id: str, change: Change) -> Memory:
        """Changes what a memory says, its metadata, or when it holds."""
        return self._service.edit(scope, memory_id, change)

    def correct(self, scope: Scope, memory_id: str, content: str, by: MemorySource) -> Memory:
        """Rewrites a source's own word; beside another one's it puts what should have been said."""
        return self._service.restate(self._service.store.get(scope, memory_id), content, by)

    def feedback(self, scope: Scope, memory_id: str, correct: bool, by: MemorySource) -> Memory:
        """Somebody says that a memory is right or wrong."""
        self._service.feedback(scope, memory_id, correct, by)
        return self._service.store.get(scope, memory_id)

    def why(self, scope: Scope, memory_id: str) -> Why:
        """Why a memory is there and believed as it is."""
        return self._service.why(scope, memory_id)

    def superseded(self, scope: Scope) -> list[Superseded]:
        """The memories whose place others have taken."""
        return self._service.superseded(scope)

    def restore(self, scope: Scope, memory_id: str) -> Memory:
        """Has a memory hold again, or say what it said before."""
        return self._service.restore(scope, memory_id)

    def delete(self, scope: Scope, memory_id: str | None, scrub: bool) -> int:
        """Deletes a memory, or with None all of the scope, of a user alone with every agent; how many there were."""
        store, now = self._service.store, time.time()
        if memory_id is not None or scope.agent:
            ids = None if memory_id is None else [memory_id]
            deleted = store.delete(scope, ids, at=now, reason="asked for")
        else:
            deleted = sum(part.memories for part in store.erase(scope.user, at=now, reason="asked for"))
        if scrub:
            store.scrub()
        return deleted

    def close(self) -> None:
        """Ends the thread that makes vectors and closes the store, if both are its own."""
        if self._owns_store:
            self._service.close()
            self._service.store.close()
