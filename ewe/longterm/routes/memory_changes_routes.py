"""/v1/memories/superseded, .../why and .../restore: what has changed, on what grounds, and back."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from ewe.longterm.routes import memory_schemas as schemas
from ewe.longterm.routes.memory_access import MemoryAccess
from ewe.longterm.service import MemoryService
from ewe.longterm.superseded import Superseded
from ewe.server.request_handling.ignored import RequestRoute
from ewe.server.schemas.common import ERROR_RESPONSES
from ewe.server.schemas.memory_use import MemoryPlace

router = APIRouter(prefix="/v1/memories", tags=["EWE"], responses=ERROR_RESPONSES, route_class=RequestRoute)

_Place = Annotated[MemoryPlace, Query()]


@router.get("/superseded")
async def list_superseded(place: _Place, request: Request) -> schemas.SupersededList:
    """The memories of this user and agent whose place later ones have taken, and why."""
    access = MemoryAccess(request)

    def listed(service: MemoryService) -> schemas.SupersededList:
        return schemas.SupersededList(data=[_shown(access, one) for one in service.superseded(access.scope(place))])

    return await access.run(listed)


@router.get("/{memory_id}/why")
async def explain_memory(memory_id: str, place: _Place, request: Request) -> schemas.MemoryWhy:
    """Why one memory is there and believed as it is: its history, what took its place, replaced or contradicts it."""
    access = MemoryAccess(request)

    def explained(service: MemoryService) -> schemas.MemoryWhy:
        memory = access.find(service, place, memory_id)
        why = service.why(memory.scope, memory.id)
        return schemas.MemoryWhy(
            memory=access.schema_of(why.memory),
            said=why.said,
            history=[schemas.WireRevision.model_validate(one) for one in why.history],
            ended=None if why.ended is None else _shown(access, why.ended),
            supersedes=[access.schema_of(one) for one in why.supersedes],
            contradicts=[access.schema_of(one) for one in why.contradicts],
        )

    return await access.run(explained)


@router.post("/{memory_id}/restore")
async def restore_memory(memory_id: str, body: MemoryPlace, request: Request) -> schemas.WireMemory:
    """Has a memory that ended, or is contradicted, hold again; any other says what it said before its edit."""
    access = MemoryAccess(request)

    def restored(service: MemoryService) -> schemas.WireMemory:
        memory = access.find(service, body, memory_id, to_change=True)
        return access.schema_of(service.restore(memory.scope, memory.id, by="asked for over HTTP"))

    return await access.run(restored)


def _shown(access: MemoryAccess, one: Superseded) -> schemas.SupersededMemory:
    by = access.schema_of(one.by) if one.by is not None else None
    return schemas.SupersededMemory(memory=access.schema_of(one.memory), at=one.at, by=by, text=one.text)
