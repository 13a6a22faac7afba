"""Who asks for memories: which of them they may read or change, and how these look to them."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from fastapi import Request

from ewe.errors import InvalidRequestError
from ewe.longterm.memory_search import visible
from ewe.longterm.recall import Recalled
from ewe.longterm.records import Memory, MemorySource, Scope
from ewe.longterm.request_memories import RequestMemories, scopes_of
from ewe.longterm.routes import memory_schemas as schemas
from ewe.longterm.scoring.verimem import source_of
from ewe.longterm.service import MemoryService
from ewe.server.engine_service import key_of, service_of
from ewe.server.http.error_responses import RefusedError
from ewe.server.request_handling.thread_work import run_in_thread
from ewe.server.schemas.memory_use import MemoryPlace
from ewe.types import MemoryOptions

_T = TypeVar("_T")
_SAME = schemas.WireMemory.model_fields.keys() - {"object", "user", "agent", "shared"}
_FOUND = schemas.FoundMemory.model_fields.keys() - {"memory", "replaced_by"}


class MemoryAccess:
    """The memories as far as whoever sent a request may read or change them, and how these look to him."""

    def __init__(self, request: Request) -> None:
        named = [name for name in ("user", "agent") if name in request.query_params]
        if named and request.method in ("POST", "PATCH"):  # else the memories of nobody would be meant, without a word
            raise RefusedError(400, f"{named[0]}: belongs into the body of this request", param=named[0])
        self._request = request
        self._server, self._key = service_of(request), key_of(request)

    def scope(self, place: MemoryPlace) -> Scope:
        """Where the memories lie that the caller means."""
        return Scope(*self._server.tenants.owner(self._key, place.user, place.agent))

    def source(self, given: schemas.Source, user: str) -> MemorySource:
        """Who says it: the user himself unless the request names somebody; as reliable as that kind of source is."""
        name = (user if given.kind == "user" else "") if given.id is None else given.id
        voice = self._server.tenants.voice(self._key, name) if given.kind == "user" else name
        return source_of(given.kind, voice, given.reliability)

    def scopes(self, search: schemas.MemorySearchRequest) -> tuple[Scope, ...]:
        """What a search may see; raises InvalidRequestError for a scope of nobody."""
        scope = self.scope(search)
        return scopes_of(MemoryOptions(scope.user, scope.agent, search.scope))

    def find(self, service: MemoryService, place: MemoryPlace, memory_id: str, *, to_change: bool = False) -> Memory:
        """The caller's memory; to read, also a shared one that he names without an owner. Raises RefusedError."""
        own, shared = service.store.find(self.scope(place), memory_id), None
        if own is None and not place.user and not place.agent:
            shared = service.store.find(Scope(), memory_id)
        if shared is not None and to_change:
            raise RefusedError(
                403, "the shared memories belong to whoever runs this server", code="shared_memory", may_retry=False
            )
        memory = own or shared
        if memory is None:
            raise RefusedError(404, f"there is no memory {memory_id!r} of this user and agent", code="memory_not_found")
        return memory

    def read(self, service: MemoryService, reading: schemas.MemoryReading, memory_id: str) -> Memory:
        """The caller's memory, or a shared one, as it is or was. Raises RefusedError if there is none, or not then."""
        memory = self.find(service, reading, memory_id)
        was = service.get(memory.scope, memory_id, reading.as_of)
        if was is None:
            raise RefusedError(404, f"the memory {memory_id!r} did not hold at that time", code="memory_not_found")
        return was

    def names(self, scope: Scope) -> tuple[str, str]:
        """User and agent as the caller knows them."""
        return self._server.tenants.names(self._key, scope.user, scope.agent)

    def schema_of(self, memory: Memory) -> schemas.WireMemory:
        """A memory as the caller reads it."""
        user, agent = self.names(memory.scope)
        same = {name: getattr(memory, name) for name in _SAME}
        if memory.source.kind == "user":
            same["source"] = replace(memory.source, id=self.names(Scope(memory.source.id))[0])
        return schemas.WireMemory(user=user, agent=agent, shared=memory.scope.shared, **same)

    def page(self, service: MemoryService, listing: schemas.MemoryListing) -> schemas.MemoryPage:
        """The memories that the caller asks for, and whose they are."""
        tenants, scope = self._server.tenants, self.scope(listing)
        in_sight = visible(scope.user, scope.agent)
        sizes = {
            one: size
            for one, size in service.store.scopes().items()
            if tenants.owns(self._key, one.user, one.agent)
            and (one in in_sight if listing.visible else _is_named(one, scope, listing))
        }
        names = {one: self.names(one) for one in sizes}
        memories = service.page(list(sizes), listing.offset, listing.limit + 1, listing.as_of)
        return schemas.MemoryPage(
            data=[self.schema_of(memory) for memory in memories[: listing.limit]],
            owners=[
                schemas.MemoryOwner(user=names[one][0], agent=names[one][1], memories=size)
                for one, size in sizes.items()
            ],
            has_more=len(memories) > listing.limit,
        )

    def found_schema(self, recalled: Recalled) -> schemas.FoundMemory:
        """A memory that was found as the caller reads it."""
        instead = recalled.replaced_by
        return schemas.FoundMemory(
            memory=self.schema_of(recalled.memory),
            replaced_by=None if instead is None else self.schema_of(instead),
            **{name: getattr(recalled, name) for name in _FOUND},
        )

    async def run(self, call: Callable[[MemoryService], _T]) -> _T:
        """What the memories answer, in a thread of its own, as one of the caller's requests under way.

        Raises RefusedError where there are no memories, or where they fail.
        """
        memories = self._memories()
        return await run_in_thread(self._request, self._server.queues.memories, lambda _: _guarded(memories, call))

    def _memories(self) -> RequestMemories:
        memories = self._server.engine.memories
        if not isinstance(memories, RequestMemories):
            message = "this server keeps no memories: start it with longterm.path set to a folder for them"
            raise RefusedError(404, message, code="no_memories")
        return memories


def _is_named(one: Scope, scope: Scope, listing: schemas.MemoryListing) -> bool:
    """Whether it is the named user's, with every agent, or the named agent's."""
    return (not listing.user or one.user == scope.user) and (not listing.agent or one.agent == scope.agent)


def _guarded(memories: RequestMemories, call: Callable[[MemoryService], _T]) -> _T:
    try:
        return call(memories.service)
    except (RefusedError, InvalidRequestError):
        raise
    except Exception as error:
        memories.failed("request", error)
        message = "the memories cannot be reached; the server's log says why"
        raise RefusedError(503, message, code="memories_failed", may_retry=False) from error
