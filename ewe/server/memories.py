"""/v1/memories: memories are added, searched, judged, shown with their history, and deleted.

Owns: the routes, and which memory a caller may read or change. Knows the service of long-term memory behind the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Request

from ewe.errors import InvalidRequestError
from ewe.longterm.live import LiveMemories, scopes_of
from ewe.longterm.recall import Recalled
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.scoring.verimem_sources import write_time_prior
from ewe.longterm.service import MemoryService
from ewe.server.errors import RefusedError
from ewe.server.ignored import RequestRoute
from ewe.server.offload import run_in_thread
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.memory_schemas import (
    Deleted,
    FeedbackAnswer,
    FoundMemory,
    MemoryDeletion,
    MemoryFeedback,
    MemoryList,
    MemoryPlace,
    MemorySearchRequest,
    NewMemory,
    RevisionList,
    Source,
    WireMemory,
    WireRevision,
    WireSource,
)
from ewe.server.service import key_of, service_of
from ewe.types import MemoryOptions

router = APIRouter(prefix="/v1/memories", tags=["EWE"], responses=ERROR_RESPONSES, route_class=RequestRoute)

_T = TypeVar("_T")
_Place = Annotated[MemoryPlace, Query()]
_Deletion = Annotated[MemoryDeletion, Query()]


class _Caller:
    """Whoever sent a request, and the memories in his words."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._server, self._key = service_of(request), key_of(request)

    def scope(self, place: MemoryPlace) -> Scope:
        """Where the memories lie that the caller means."""
        return self._server.tenants.scope(self._key, place.user, place.agent)

    def scopes(self, wanted: MemorySearchRequest) -> tuple[Scope, ...]:
        """What a search may see; raises InvalidRequestError for a scope of nobody."""
        scope = self.scope(wanted)
        return scopes_of(MemoryOptions(scope.user, scope.agent, wanted.scope))

    def find(self, service: MemoryService, place: MemoryPlace, memory_id: str, *, to_change: bool = False) -> Memory:
        """The caller's memory; to read, also a shared one that he names without an owner. Raises RefusedError."""
        own, shared = service.store.find(self.scope(place), memory_id), None
        if own is None and not place.user and not place.agent:
            shared = service.store.find(Scope(), memory_id)
        if shared is not None and to_change:
            raise RefusedError(
                403, "the shared memories belong to whoever runs this server", code="shared_memory", may_retry=False
            )
        found = own or shared
        if found is None:
            raise RefusedError(404, f"there is no memory {memory_id!r} of this user and agent", code="memory_not_found")
        return found

    def told(self, memory: Memory) -> WireMemory:
        """A memory as the caller reads it."""
        user, agent = self._server.tenants.names(self._key, memory.scope)
        source = WireSource(kind=memory.source.kind, id=memory.source.id, reliability=memory.source.reliability)
        same = ("id", "content", "kind", "created_at", "updated_at", "veracity", "uncertainty")
        counts = ("recall_count", "correct_count", "incorrect_count")
        return WireMemory(
            user=user,
            agent=agent,
            shared=memory.scope.shared,
            source=source,
            metadata=dict(memory.metadata),
            contradicts=list(memory.contradicts),
            **{name: getattr(memory, name) for name in (*same, *counts)},
        )

    def found(self, recalled: Recalled) -> FoundMemory:
        """A memory that was found as the caller reads it."""
        return FoundMemory(
            memory=self.told(recalled.memory),
            belief=float(recalled.belief),
            uncertainty=float(recalled.uncertainty),
            similarity=float(recalled.similarity),
            action=recalled.action.value,
            tried=[action.value for action in recalled.tried],
        )

    async def served(self, call: Callable[[MemoryService], _T]) -> _T:
        """What the memories answer, in a thread of its own, as one of the caller's requests under way.

        Raises RefusedError where there are no memories, or where they fail.
        """
        memories = self._memories()
        return await run_in_thread(self._request, lambda _: _guarded(memories, call))

    def _memories(self) -> LiveMemories:
        memories = self._server.llm.client.components.memories
        if memories is None:
            message = "this server keeps no memories: start it with longterm.path set to a folder for them"
            raise RefusedError(404, message, code="no_memories")
        return memories


def _guarded(memories: LiveMemories, call: Callable[[MemoryService], _T]) -> _T:
    try:
        return call(memories.service)
    except (RefusedError, InvalidRequestError):
        raise
    except Exception as error:
        memories.failed("request", error)
        message = "the memories cannot be reached; the server's log says why"
        raise RefusedError(503, message, code="memories_failed", may_retry=False) from error


@router.post("")
async def add_memory(body: NewMemory, request: Request) -> WireMemory:
    """Remembers a text; the same words again are the memory that is there. Contradictions are found and marked."""
    caller, source = _Caller(request), _source(body.source, body.user)

    def add(service: MemoryService) -> Memory:
        return service.add(body.content, caller.scope(body), source, body.kind, body.metadata)

    return caller.told(await caller.served(add))


@router.post("/search")
async def search_memories(body: MemorySearchRequest, request: Request) -> MemoryList:
    """What is remembered for a query, and what may be used of it; memories below the threshold are checked first."""
    caller = _Caller(request)
    scopes = caller.scopes(body)
    recall = await caller.served(lambda service: service.search(body.query, scopes, body.top_k, body.threshold))
    return MemoryList(
        data=[caller.found(one) for one in recall.used],
        disregarded=[caller.found(one) for one in recall.disregarded],
        threshold=recall.threshold,
    )


@router.get("/{memory_id}")
async def get_memory(memory_id: str, place: _Place, request: Request) -> WireMemory:
    """One memory."""
    caller = _Caller(request)
    return caller.told(await caller.served(lambda service: caller.find(service, place, memory_id)))


@router.get("/{memory_id}/history")
async def memory_history(memory_id: str, place: _Place, request: Request) -> RevisionList:
    """Every change of a memory with its evidence, the first first."""
    caller = _Caller(request)

    def history(service: MemoryService) -> RevisionList:
        memory = caller.find(service, place, memory_id)
        revisions = service.store.history(memory.scope, memory.id)
        names = tuple(WireRevision.model_fields)
        return RevisionList(
            data=[WireRevision.model_validate({name: getattr(one, name) for name in names}) for one in revisions]
        )

    return await caller.served(history)


@router.post("/{memory_id}/feedback")
async def give_feedback(memory_id: str, body: MemoryFeedback, request: Request) -> FeedbackAnswer:
    """Somebody says that a memory is right or wrong; each voice counts once until it changes its mind."""
    caller, by = _Caller(request), _source(body.by, body.user)

    def feedback(service: MemoryService) -> FeedbackAnswer:
        memory = caller.find(service, body, memory_id, to_change=True)
        revision = service.feedback(memory.scope, memory.id, body.correct, by)
        now = service.store.get(memory.scope, memory.id)
        return FeedbackAnswer(counted=revision is not None, memory=caller.told(now))

    return await caller.served(feedback)


@router.delete("/{memory_id}")
async def delete_memory(memory_id: str, place: _Deletion, request: Request) -> Deleted:
    """Deletes a memory with its history, for good."""
    caller = _Caller(request)

    def delete(service: MemoryService) -> Deleted:
        memory = caller.find(service, place, memory_id, to_change=True)
        return _delete(service, memory.scope, [memory.id], place.scrub)

    return await caller.served(delete)


@router.delete("")
async def delete_memories(place: _Deletion, request: Request) -> Deleted:
    """Deletes all memories of a user, of an agent, or of a user with one agent; the shared ones stay."""
    caller = _Caller(request)
    if not place.user and not place.agent:
        raise RefusedError(400, "user: say whose memories are to be deleted, with user, agent or both", param="user")
    return await caller.served(lambda service: _delete(service, caller.scope(place), None, place.scrub))


def _delete(service: MemoryService, scope: Scope, ids: list[str] | None, scrub: bool) -> Deleted:
    deleted = service.store.delete(scope, ids, at=time.time(), reason="asked for over HTTP")
    if scrub:
        service.store.scrub()
    return Deleted(deleted=deleted)


def _source(given: Source, user: str) -> MemorySource:
    """Who says it: the user himself unless the request names somebody; as reliable as that kind of source is."""
    name = (user if given.kind == "user" else "") if given.id is None else given.id
    said = MemorySource(given.kind, name)
    return MemorySource(given.kind, name, write_time_prior(said) if given.reliability is None else given.reliability)
