"""/v1/memories: memories are added, searched, judged, shown with their history, and deleted."""

import time
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from ewe.longterm.records import Memory
from ewe.longterm.routes import memory_schemas as schemas
from ewe.longterm.routes.memory_access import MemoryAccess
from ewe.longterm.service import MemoryService
from ewe.longterm.store import Change
from ewe.server.http.error_responses import RefusedError
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.memory_use import MemoryPlace

router = APIRouter(prefix="/v1/memories", tags=["EWE"], responses=ERROR_RESPONSES, route_class=RequestRoute)

_Place = Annotated[MemoryPlace, Query()]
_Deletion = Annotated[schemas.MemoryDeletion, Query()]
_Reading = Annotated[schemas.MemoryReading, Query()]
_Listing = Annotated[schemas.MemoryListing, Query()]


@router.post("")
async def add_memory(body: schemas.NewMemory, request: Request) -> schemas.WireMemory:
    """Remembers a text; the same words again are the memory that is there. Contradictions are found and marked."""
    access = MemoryAccess(request)
    source = access.source(body.source, body.user)

    def add(service: MemoryService) -> Memory:
        return service.add(
            body.content, access.scope(body), source, body.kind, body.metadata, body.valid_from,
            created_at=body.created_at, observed_at=body.observed_at,
        )  # fmt: skip

    return access.schema_of(await access.run(add))


@router.get("")
async def list_memories(listing: _Listing, request: Request) -> schemas.MemoryPage:
    """All memories of a user with every agent, of an agent or of everybody that this key knows, and their owners."""
    access = MemoryAccess(request)
    return await access.run(lambda service: access.page(service, listing))


@router.post("/search")
async def search_memories(body: schemas.MemorySearchRequest, request: Request) -> schemas.MemoryList:
    """What is remembered for a query, and what may be used of it; memories below the threshold are checked first."""
    access = MemoryAccess(request)
    scopes, limits = access.scopes(body), (body.top_k, body.threshold, body.as_of)
    recall = await access.run(lambda service: service.search(body.query, scopes, *limits))
    return schemas.MemoryList(
        data=[access.found_schema(one) for one in recall.used],
        disregarded=[access.found_schema(one) for one in recall.disregarded],
        threshold=recall.threshold,
    )


@router.get("/{memory_id}")
async def get_memory(memory_id: str, reading: _Reading, request: Request) -> schemas.WireMemory:
    """One memory, as it is or was at a time."""
    access = MemoryAccess(request)
    return access.schema_of(await access.run(lambda service: access.read(service, reading, memory_id)))


@router.patch("/{memory_id}")
async def edit_memory(memory_id: str, body: schemas.MemoryEdit, request: Request) -> schemas.WireMemory:
    """Changes what a memory says, or when it holds; what it said before stays in its history."""
    access, given = MemoryAccess(request), body.model_fields_set

    def edit(service: MemoryService) -> Memory:
        memory = access.find(service, body, memory_id, to_change=True)
        if body.by is not None and body.content is not None:
            return service.restate(memory, body.content, access.source(body.by, body.user))
        since = body.valid_from if "valid_from" in given else memory.valid_from
        until = body.valid_until if "valid_until" in given else memory.valid_until
        change = Change(content=body.content, metadata=body.metadata, valid=(since, until))
        return service.edit(memory.scope, memory.id, change)

    return access.schema_of(await access.run(edit))


@router.get("/{memory_id}/history")
async def memory_history(memory_id: str, place: _Place, request: Request) -> schemas.RevisionList:
    """Every change of a memory with its evidence, the first first."""
    access = MemoryAccess(request)

    def history(service: MemoryService) -> schemas.RevisionList:
        memory = access.find(service, place, memory_id)
        revisions = service.store.history(memory.scope, memory.id)
        return schemas.RevisionList(data=[schemas.WireRevision.model_validate(one) for one in revisions])

    return await access.run(history)


@router.post("/{memory_id}/feedback")
async def give_feedback(memory_id: str, body: schemas.MemoryFeedback, request: Request) -> schemas.FeedbackAnswer:
    """Somebody says that a memory is right or wrong; each voice counts once until it changes its mind."""
    access = MemoryAccess(request)
    by = access.source(body.by, body.user)

    def feedback(service: MemoryService) -> schemas.FeedbackAnswer:
        memory = access.find(service, body, memory_id, to_change=True)
        revision = service.feedback(memory.scope, memory.id, body.correct, by)
        now = service.store.get(memory.scope, memory.id)
        return schemas.FeedbackAnswer(counted=revision is not None, memory=access.schema_of(now))

    return await access.run(feedback)


@router.delete("/{memory_id}")
async def delete_memory(memory_id: str, place: _Deletion, request: Request) -> schemas.Deleted:
    """Deletes a memory with its history, for good."""
    access = MemoryAccess(request)

    def delete(service: MemoryService) -> schemas.Deleted:
        memory = access.find(service, place, memory_id, to_change=True)
        return _deleted(service, service.store.delete(memory.scope, [memory.id], **_now()), place.scrub)

    return await access.run(delete)


@router.delete("")
async def delete_memories(place: _Deletion, request: Request) -> schemas.Deleted:
    """Deletes all memories of a user with every agent, of an agent alone, or of a user with one agent, for good."""
    access = MemoryAccess(request)
    if not place.user and not place.agent:
        raise RefusedError(400, "user: say whose memories are to be deleted, with user, agent or both", param="user")

    def delete(service: MemoryService) -> schemas.Deleted:
        scope = access.scope(place)
        if place.agent:
            return _deleted(service, service.store.delete(scope, **_now()), place.scrub)
        parts = service.store.erase(scope.user, **_now())
        receipt = [
            schemas.ErasedPart(agent=access.names(part.scope)[1], **{name: getattr(part, name) for name in _ERASED})
            for part in parts
        ]
        return _deleted(service, sum(part.memories for part in parts), place.scrub, receipt)

    return await access.run(delete)


_ERASED = ("memories", "revisions", "words", "vectors", "log")


def _now() -> dict[str, Any]:
    return {"at": time.time(), "reason": "asked for over HTTP"}


def _deleted(
    service: MemoryService, count: int, scrub: bool, receipt: Sequence[schemas.ErasedPart] = ()
) -> schemas.Deleted:
    if scrub:
        service.store.scrub()
    return schemas.Deleted(deleted=count, receipt=list(receipt), scrubbed=scrub)
